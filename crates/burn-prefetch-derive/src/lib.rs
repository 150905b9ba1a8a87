//! Derives which tensors a batch holds, for `burn-prefetch`.

use proc_macro::TokenStream;
use proc_macro2::{Span, TokenStream as Tokens};
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
    let input = parse_macro_input!(input as DeriveInput);
    let implemented = implement(&input);
    implemented.unwrap_or_else(Error::into_compile_error).into()
}

fn implement(input: &DeriveInput) -> Result<Tokens, Error> {
    let Data::Struct(data) = &input.data else {
        let what = "StagedBatch can be derived for structs: the tensors of a batch are its fields";
        return Err(Error::new(input.span(), what));
    };
    let krate: Path = syn::parse_quote!(::burn_prefetch);
    let members = moved(&data.fields)?;
    let name = &input.ident;
    let mut generics = input.generics.clone();
    for parameter in input.generics.type_params() {
        let parameter = &parameter.ident;
        let bound = syn::parse_quote!(#parameter: #krate::StagedBatch);
        generics.make_where_clause().predicates.push(bound);
    }
    let (with, _, bounds) = generics.split_for_impl();
    let (_, of, _) = input.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #with #krate::StagedBatch for #name #of #bounds {
            fn visit<__V: #krate::TensorVisitor>(&mut self, visitor: &mut __V) {
                #(#krate::StagedBatch::visit(&mut self.#members, visitor);)*
                let _ = visitor;
            }
        }
    })
}

/// The fields that are not skipped.
fn moved(fields: &Fields) -> Result<Vec<Member>, Error> {
    let mut members = Vec::new();
    for (place, field) in fields.iter().enumerate() {
        if is_skipped(&field.attrs)? {
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

fn is_skipped(attributes: &[Attribute]) -> Result<bool, Error> {
    let mut skipped = false;
    for attribute in attributes.iter().filter(|it| it.path().is_ident("staged")) {
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
