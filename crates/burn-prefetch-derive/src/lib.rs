//! Derives which tensors a batch holds and how many bytes it has, for `burn-prefetch`.

mod bounds;
mod said;

use proc_macro::TokenStream;
use proc_macro2::{Ident, Span, TokenStream as Tokens};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, Index, Member, Path, parse_macro_input};

use bounds::bounded;
use said::{is_skipped, krate};

/// Implements `StagedBatch` for a struct: every field is shown to the visitor, in the order in which they
/// are declared.
///
/// A field may be
///
/// - a tensor, or another struct that derives or implements it;
/// - an `Option`, `Box`, `Vec`, `VecDeque` or array of such, a tuple of up to four, or the values of a
///   `HashMap` or `BTreeMap`;
/// - a value in which there is no tensor, which stays as it is: numbers, `bool`, `char`, `()`, `String`,
///   `&'static str`, `PathBuf`, `Duration`, `PhantomData`.
///
/// `#[staged(skip)]` leaves any other field alone, as it does an `Arc`, which cannot be changed: its
/// tensors would stay where the batcher has made them.
///
/// Only type parameters that occur in fields which are not skipped have to implement it. Where the crate
/// has another name, `#[staged(crate = path)]` on the struct says which.
#[proc_macro_derive(StagedBatch, attributes(staged))]
pub fn staged_batch(input: TokenStream) -> TokenStream {
    derive(input, "StagedBatch", "staged", |krate, fields| {
        let calls = fields.iter().map(|Counted { at, member, .. }| {
            quote_spanned!(*at=> #krate::StagedBatch::visit(&mut self.#member, visitor);)
        });
        quote! {
            fn visit<__V: #krate::TensorVisitor>(&mut self, visitor: &mut __V) {
                #(#calls)*
                let _ = visitor;
            }
        }
    })
}

/// Implements `ByteCount` for a struct: the bytes of all fields.
///
/// A field may be
///
/// - a tensor, or another struct that derives or implements it;
/// - a number, `bool`, `char`, `()` or `Duration`, which counts as what it takes itself;
/// - a `String`, `str`, `PathBuf` or `Path`, which counts as its text; a `&'static str` counts as nothing, for
///   it is the program's and not the batch's, and so does a `PhantomData`;
/// - an `Option`, `Box`, `Vec`, `VecDeque`, `HashMap`, `BTreeMap`, slice or array of such, or a tuple of up to
///   four: the sum of what is in it;
/// - an `Arc` of such, which counts as all that it holds, in every batch that has it: shared by three
///   batches it counts three times.
///
/// For another type of your own derive or implement it; `#[bytes(skip)]` leaves a field out.
///
/// Only type parameters that occur in fields which are not skipped have to implement it. Where the crate
/// has another name, `#[bytes(crate = path)]` on the struct says which.
#[proc_macro_derive(ByteCount, attributes(bytes))]
pub fn byte_count(input: TokenStream) -> TokenStream {
    derive(input, "ByteCount", "bytes", |krate, fields| {
        let counts = fields.iter().map(|Counted { at, member, .. }| {
            quote_spanned!(*at=> #krate::ByteCount::byte_count(&self.#member))
        });
        quote! {
            fn byte_count(&self) -> ::core::primitive::usize {
                0 #(+ #counts)*
            }
        }
    })
}

/// A field that is not skipped.
struct Counted<'a> {
    field: &'a syn::Field,
    member: Member,
    /// Where what is wrong with it is shown.
    at: Span,
}

/// Implements a trait of the crate for a struct by calling it for each field that is not skipped.
fn derive(
    input: TokenStream,
    of: &str,
    attribute: &str,
    body: impl Fn(&Path, &[Counted<'_>]) -> Tokens,
) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let implemented = implement(&input, (of, attribute), body);
    implemented.unwrap_or_else(Error::into_compile_error).into()
}

fn implement(
    input: &DeriveInput,
    (of, attribute): (&str, &str),
    body: impl Fn(&Path, &[Counted<'_>]) -> Tokens,
) -> Result<Tokens, Error> {
    let Data::Struct(data) = &input.data else {
        let what =
            format!("{of} can be derived for structs: the tensors of a batch are its fields");
        return Err(Error::new(input.span(), what));
    };
    let krate = krate(&input.attrs, attribute)?;
    let fields = counted(&data.fields, attribute)?;
    let body = body(&krate, &fields);
    let (name, of) = (&input.ident, Ident::new(of, Span::call_site()));
    let mut generics = input.generics.clone();
    for ty in bounded(&input.generics, fields.iter().map(|counted| counted.field)) {
        let bound = syn::parse_quote!(#ty: #krate::#of);
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
fn counted<'a>(fields: &'a Fields, attribute: &str) -> Result<Vec<Counted<'a>>, Error> {
    let mut counted = Vec::new();
    for (place, field) in fields.iter().enumerate() {
        if is_skipped(field, attribute)? {
            continue;
        }
        // Shown at the field, but with the names of the derive's own place.
        let at = field.ty.span().resolved_at(Span::call_site());
        let member = match &field.ident {
            Some(name) => {
                let mut name = name.clone();
                name.set_span(at);
                Member::Named(name)
            }
            None => Member::Unnamed(Index {
                index: u32::try_from(place).unwrap_or(u32::MAX),
                span: at,
            }),
        };
        counted.push(Counted { field, member, at });
    }
    Ok(counted)
}
