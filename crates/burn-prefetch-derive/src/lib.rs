//! Derives which tensors a batch holds and how many bytes it has, for `burn-prefetch`.

use proc_macro::TokenStream;
use proc_macro2::{Ident, Span, TokenStream as Tokens};
use quote::quote;
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Fields, Index, Member, Path, parse_macro_input};

/// Implements `StagedBatch` for a struct: every field is shown to the visitor, in the order in which they
/// are declared.
///
/// Fields are tensors, values without tensors, `Option`s, `Vec`s, arrays and tuples of such, and structs
/// that derive it themselves. `#[staged(skip)]` leaves a field alone.
#[proc_macro_derive(StagedBatch, attributes(staged))]
pub fn staged_batch(input: TokenStream) -> TokenStream {
    derive(input, "StagedBatch", "staged", |krate, members| {
        quote! {
            fn visit<__V: #krate::TensorVisitor>(&mut self, visitor: &mut __V) {
                #(#krate::StagedBatch::visit(&mut self.#members, visitor);)*
                let _ = visitor;
            }
        }
    })
}

/// Implements `ByteCount` for a struct: the bytes of all fields.
///
/// Fields are tensors, numbers, `Option`s, `Vec`s, arrays and tuples of such, and structs that derive it
/// themselves. `#[bytes(skip)]` leaves a field out.
#[proc_macro_derive(ByteCount, attributes(bytes))]
pub fn byte_count(input: TokenStream) -> TokenStream {
    derive(input, "ByteCount", "bytes", |krate, members| {
        quote! {
            fn byte_count(&self) -> usize {
                0 #(+ #krate::ByteCount::byte_count(&self.#members))*
            }
        }
    })
}

/// Implements a trait of the crate for a struct by calling it for each field that is not skipped.
fn derive(
    input: TokenStream,
    of: &str,
    attribute: &str,
    body: impl Fn(&Path, &[Member]) -> Tokens,
) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let implemented = implement(&input, (of, attribute), body);
    implemented.unwrap_or_else(Error::into_compile_error).into()
}

fn implement(
    input: &DeriveInput,
    (of, attribute): (&str, &str),
    body: impl Fn(&Path, &[Member]) -> Tokens,
) -> Result<Tokens, Error> {
    let Data::Struct(data) = &input.data else {
        let what =
            format!("{of} can be derived for structs: the tensors of a batch are its fields");
        return Err(Error::new(input.span(), what));
    };
    let krate: Path = syn::parse_quote!(::burn_prefetch);
    let body = body(&krate, &members(&data.fields, attribute)?);
    let (name, of) = (&input.ident, Ident::new(of, Span::call_site()));
    let mut generics = input.generics.clone();
    for parameter in input.generics.type_params() {
        let parameter = &parameter.ident;
        let bound = syn::parse_quote!(#parameter: #krate::#of);
        generics.make_where_clause().predicates.push(bound);
    }
    let (with, _, bounds) = generics.split_for_impl();
    let (_, arguments, _) = input.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #with #krate::#of for #name #arguments #bounds {
            #body
        }
    })
}

/// The fields that are not skipped.
fn members(fields: &Fields, attribute: &str) -> Result<Vec<Member>, Error> {
    let mut members = Vec::new();
    for (place, field) in fields.iter().enumerate() {
        if is_skipped(&field.attrs, attribute)? {
            continue;
        }
        members.push(match &field.ident {
            Some(name) => Member::Named(name.clone()),
            None => Member::Unnamed(Index {
                index: u32::try_from(place).unwrap_or(u32::MAX),
                span: Span::call_site(),
            }),
        });
    }
    Ok(members)
}

fn is_skipped(attributes: &[Attribute], name: &str) -> Result<bool, Error> {
    let mut skipped = false;
    for attribute in attributes.iter().filter(|it| it.path().is_ident(name)) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("skip") {
                return Err(meta.error("the only thing to be said of a field is `skip`"));
            }
            skipped = true;
            Ok(())
        })?;
    }
    Ok(skipped)
}
