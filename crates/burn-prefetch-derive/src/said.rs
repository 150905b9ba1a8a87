//! What is said of a struct and its fields in attributes, and what of that cannot be.

use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::{Attribute, Error, Field, Path, Token};

/// Where the crate's traits are found that is said of a struct; `::burn_prefetch`, if nothing is.
pub(crate) fn krate(attributes: &[Attribute], name: &str) -> Result<Path, Error> {
    let mut krate = None;
    each(attributes, name, |meta| {
        if meta.path.is_ident("skip") {
            return Err(meta.error(format!(
                "`skip` is said of a field, not of a struct: put `#[{name}(skip)]` above the field"
            )));
        }
        if !meta.path.is_ident("crate") {
            return Err(meta.error(format!(
                "the only thing to be said of a struct is where the crate is: `#[{name}(crate = path)]`"
            )));
        }
        let path = path(&meta, name)?;
        once(&mut krate, path, &meta)
    })?;
    Ok(krate.unwrap_or_else(|| syn::parse_quote!(::burn_prefetch)))
}

/// Whether a field is to be left alone.
pub(crate) fn is_skipped(field: &Field, name: &str) -> Result<bool, Error> {
    let mut skipped = None;
    each(&field.attrs, name, |meta| {
        if !meta.path.is_ident("skip") {
            return Err(meta.error(format!(
                "the only thing to be said of a field is `#[{name}(skip)]`"
            )));
        }
        once(&mut skipped, (), &meta)
    })?;
    Ok(skipped.is_some())
}

/// Shows everything that is said in attributes of this name.
fn each(
    attributes: &[Attribute],
    name: &str,
    mut say: impl FnMut(ParseNestedMeta<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    for attribute in attributes.iter().filter(|it| it.path().is_ident(name)) {
        let mut says_nothing = true;
        attribute.parse_nested_meta(|meta| {
            says_nothing = false;
            say(meta)
        })?;
        if says_nothing {
            let what = format!("`#[{name}()]` says nothing: leave it out");
            return Err(Error::new_spanned(attribute, what));
        }
    }
    Ok(())
}

fn path(meta: &ParseNestedMeta<'_>, name: &str) -> Result<Path, Error> {
    let input = meta.value()?;
    if input.peek(syn::Ident::peek_any) || input.peek(Token![::]) {
        return Path::parse_mod_style(input);
    }
    Err(input.error(format!(
        "the crate is named by a path, without quotes: `#[{name}(crate = my_crate::prefetch)]`"
    )))
}

/// Keeps what is said, unless it was said before.
fn once<T>(kept: &mut Option<T>, said: T, meta: &ParseNestedMeta<'_>) -> Result<(), Error> {
    if kept.replace(said).is_some() {
        return Err(meta.error("this is said twice: leave one of the two out"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use quote::ToTokens;
    use syn::{Data, DeriveInput};

    use super::*;

    fn parse(input: &str) -> DeriveInput {
        syn::parse_str(input).expect("it is a struct")
    }

    fn of_struct(input: &str) -> Result<String, String> {
        let path = krate(&parse(input).attrs, "bytes").map_err(|error| error.to_string())?;
        Ok(path.to_token_stream().to_string().replace(' ', ""))
    }

    fn of_field(input: &str) -> Result<bool, String> {
        let Data::Struct(data) = parse(input).data else {
            panic!("it is a struct");
        };
        let field = data.fields.iter().next().expect("there is one");
        is_skipped(field, "staged").map_err(|error| error.to_string())
    }

    fn assert_refused<T>(said: Result<T, String>, words: &str) {
        let error = said.err().expect("it is refused");
        assert!(error.contains(words), "{error}");
    }

    #[test]
    fn of_a_struct_only_the_crate_can_be_said_and_only_once() {
        for (said, path) in [
            ("", "::burn_prefetch"),
            ("#[bytes(crate = fast::loader)]", "fast::loader"),
            ("#[bytes(crate = crate)] #[staged(skip)]", "crate"),
            ("#[bytes(crate = ::other,)]", "::other"),
        ] {
            let found = of_struct(&format!("{said} struct S;"));
            assert_eq!(found.as_deref(), Ok(path));
        }
        for (said, words) in [
            ("#[bytes(skip)]", "`skip` is said of a field"),
            ("#[bytes(rename = 1)]", "of a struct is where the crate is"),
            ("#[bytes(crate = \"other\")]", "without quotes"),
            ("#[bytes()]", "says nothing"),
            ("#[bytes(crate = a, crate = b)]", "said twice"),
            ("#[bytes(crate = a)] #[bytes(crate = b)]", "said twice"),
            ("#[bytes]", "bytes"),
            ("#[bytes(crate)]", "`=`"),
        ] {
            assert_refused(of_struct(&format!("{said} struct S;")), words);
        }
    }

    #[test]
    fn of_a_field_only_that_it_is_skipped_and_only_once() {
        for (said, skipped) in [
            ("", false),
            ("#[bytes(skip)]", false),
            ("#[staged(skip)]", true),
            ("#[staged(skip,)]", true),
        ] {
            let found = of_field(&format!("struct S({said} u8);"));
            assert_eq!(found, Ok(skipped));
        }
        for (said, words) in [
            ("#[staged(skip, skip)]", "said twice"),
            ("#[staged(skip)] #[staged(skip)]", "said twice"),
            ("#[staged(crate = x)]", "`#[staged(skip)]`"),
            ("#[staged(skipp)]", "`#[staged(skip)]`"),
            ("#[staged()]", "says nothing"),
            ("#[staged(skip = true)]", "`,`"),
            ("#[staged]", "staged"),
        ] {
            assert_refused(of_field(&format!("struct S({said} u8);")), words);
        }
    }
}
