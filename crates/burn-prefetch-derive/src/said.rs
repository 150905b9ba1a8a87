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
    use syn::{Data, DeriveInput, parse_quote};

    use super::*;

    fn refused<T>(said: Result<T, Error>) -> String {
        said.err().expect("it is refused").to_string()
    }

    fn of_struct(input: &DeriveInput) -> Result<String, Error> {
        let path = krate(&input.attrs, "bytes")?;
        Ok(path.to_token_stream().to_string().replace(' ', ""))
    }

    #[test]
    fn of_a_struct_only_the_crate_can_be_said_and_only_once() {
        for (input, path) in [
            (
                parse_quote!(
                    struct S;
                ),
                "::burn_prefetch",
            ),
            (
                parse_quote!(
                    #[bytes(crate = fast::loader)]
                    struct S;
                ),
                "fast::loader",
            ),
            (
                parse_quote!(
                    #[bytes(crate = crate)]
                    #[staged(skip)]
                    struct S;
                ),
                "crate",
            ),
            (
                parse_quote!(
                    #[bytes(crate = ::other)]
                    struct S;
                ),
                "::other",
            ),
        ] {
            assert_eq!(of_struct(&input).unwrap(), path);
        }
        for (input, words) in [
            (
                parse_quote!(
                    #[bytes(skip)]
                    struct S;
                ),
                "`skip` is said of a field",
            ),
            (
                parse_quote!(
                    #[bytes(rename = "x")]
                    struct S;
                ),
                "the only thing to be said of a struct",
            ),
            (
                parse_quote!(
                    #[bytes(crate = "other")]
                    struct S;
                ),
                "without quotes",
            ),
            (
                parse_quote!(
                    #[bytes()]
                    struct S;
                ),
                "says nothing",
            ),
            (
                parse_quote!(
                    #[bytes(crate = a, crate = b)]
                    struct S;
                ),
                "said twice",
            ),
            (
                parse_quote!(
                    #[bytes(crate = a)]
                    #[bytes(crate = b)]
                    struct S;
                ),
                "said twice",
            ),
            (
                parse_quote!(
                    #[bytes]
                    struct S;
                ),
                "bytes",
            ),
            (
                parse_quote!(
                    #[bytes(crate)]
                    struct S;
                ),
                "`=`",
            ),
        ] {
            let error = refused(of_struct(&input));
            assert!(error.contains(words), "{error}");
        }
    }

    fn of_field(input: &DeriveInput) -> Result<bool, Error> {
        let Data::Struct(data) = &input.data else {
            panic!("it is a struct");
        };
        is_skipped(data.fields.iter().next().expect("there is one"), "staged")
    }

    #[test]
    fn of_a_field_only_that_it_is_skipped_and_only_once() {
        for (input, skipped) in [
            (
                parse_quote!(
                    struct S {
                        #[bytes(skip)]
                        x: u8,
                    }
                ),
                false,
            ),
            (
                parse_quote!(
                    struct S {
                        #[staged(skip)]
                        x: u8,
                    }
                ),
                true,
            ),
            (
                parse_quote!(
                    struct S(#[staged(skip)] u8);
                ),
                true,
            ),
        ] {
            assert_eq!(of_field(&input).unwrap(), skipped);
        }
        for (input, words) in [
            (
                parse_quote!(
                    struct S(#[staged(skip, skip)] u8);
                ),
                "twice",
            ),
            (
                parse_quote!(
                    struct S(
                        #[staged(skip)]
                        #[staged(skip)]
                        u8,
                    );
                ),
                "twice",
            ),
            (
                parse_quote!(
                    struct S(#[staged(crate = x)] u8);
                ),
                "`#[staged(skip)]`",
            ),
            (
                parse_quote!(
                    struct S(#[staged(skipp)] u8);
                ),
                "`#[staged(skip)]`",
            ),
            (
                parse_quote!(
                    struct S(#[staged()] u8);
                ),
                "says nothing",
            ),
            (
                parse_quote!(
                    struct S(#[staged(skip = true)] u8);
                ),
                "`,`",
            ),
            (
                parse_quote!(
                    struct S(#[staged] u8);
                ),
                "staged",
            ),
        ] {
            let error = refused(of_field(&input));
            assert!(error.contains(words), "{error}");
        }
    }
}
