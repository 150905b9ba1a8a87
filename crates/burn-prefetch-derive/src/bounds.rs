//! Which types of a generic struct have to implement the trait, for its fields to do so.

use syn::{Field, GenericArgument, Generics, Ident, Path, PathArguments, Type, TypePath};

/// The parameters that occur in these fields, in the order of the struct, and the types that belong to
/// one, such as `T::Item`, as often as they occur.
///
/// Never the type of a field as a whole: that of a recursive struct has the struct in it.
pub(crate) fn bounded<'a>(
    generics: &Generics,
    fields: impl Iterator<Item = &'a Field>,
) -> Vec<Type> {
    let parameters = generics.type_params();
    let mut found = Found {
        parameters: parameters.map(|it| (&it.ident, false)).collect(),
        belonging: Vec::new(),
    };
    for field in fields {
        found.look(&field.ty);
    }
    let occurring = found.parameters.into_iter().filter(|(_, occurs)| *occurs);
    let occurring = occurring.map(|(parameter, _)| syn::parse_quote!(#parameter));
    occurring.chain(found.belonging).collect()
}

struct Found<'a> {
    /// Each, and whether it occurs.
    parameters: Vec<(&'a Ident, bool)>,
    belonging: Vec<Type>,
}

impl Found<'_> {
    /// Looks into a type for what it holds values of. Function pointers and trait objects hold none.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "whatever other types there will be, the compiler says which bound is missing"
    )]
    fn look(&mut self, ty: &Type) {
        match ty {
            Type::Path(path) => self.look_at_path(path),
            Type::Array(array) => self.look(&array.elem),
            Type::Group(group) => self.look(&group.elem),
            Type::Paren(paren) => self.look(&paren.elem),
            Type::Ptr(pointer) => self.look(&pointer.elem),
            Type::Reference(reference) => self.look(&reference.elem),
            Type::Slice(slice) => self.look(&slice.elem),
            Type::Tuple(tuple) => tuple.elems.iter().for_each(|of| self.look(of)),
            _ => {}
        }
    }

    fn look_at_path(&mut self, path: &TypePath) {
        if let Some(qself) = &path.qself {
            // `<T as Trait>::Item`, if it has anything to do with a parameter.
            let mut of = self.anew();
            of.look(&qself.ty);
            of.look_at_arguments(&path.path);
            if of.has_any() {
                self.belonging.push(Type::Path(path.clone()));
            }
            return;
        }
        let first = path.path.segments.first();
        let parameter = first.filter(|_| path.path.leading_colon.is_none());
        let parameter = parameter.and_then(|first| {
            let mut parameters = self.parameters.iter_mut();
            parameters.find(|(parameter, _)| first.ident == **parameter)
        });
        match parameter {
            Some((_, occurs)) if path.path.segments.len() == 1 => *occurs = true,
            Some(_) => self.belonging.push(Type::Path(path.clone())),
            None => self.look_at_arguments(&path.path),
        }
    }

    /// Looks into the types between angle brackets.
    fn look_at_arguments(&mut self, path: &Path) {
        let last = path.segments.last();
        if last.is_some_and(|segment| segment.ident == "PhantomData") {
            return;
        }
        for segment in &path.segments {
            if let PathArguments::AngleBracketed(given) = &segment.arguments {
                given.args.iter().for_each(|of| self.look_at_argument(of));
            }
        }
    }

    fn look_at_argument(&mut self, argument: &GenericArgument) {
        if let GenericArgument::Type(ty) = argument {
            self.look(ty);
        }
    }

    /// The same parameters, of which none has been found yet.
    fn anew(&self) -> Self {
        Found {
            parameters: self.parameters.iter().map(|(it, _)| (*it, false)).collect(),
            belonging: Vec::new(),
        }
    }

    fn has_any(&self) -> bool {
        self.parameters.iter().any(|(_, occurs)| *occurs) || !self.belonging.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use quote::ToTokens;
    use syn::{Data, DeriveInput, parse_quote};

    use super::*;

    fn of(input: &DeriveInput) -> Vec<String> {
        let Data::Struct(data) = &input.data else {
            panic!("it is a struct");
        };
        let bounded = bounded(&input.generics, data.fields.iter());
        let text = bounded.iter().map(|ty| ty.to_token_stream().to_string());
        text.map(|text| text.replace(' ', "")).collect()
    }

    #[test]
    fn only_what_occurs_is_bounded() {
        let none: [&str; 0] = [];
        assert_eq!(
            of(&parse_quote!(
                struct S<T> {
                    x: Tensor<1>,
                    t: self::T,
                }
            )),
            none
        );
        assert_eq!(
            of(&parse_quote!(
                struct S<T>(PhantomData<T>, std::marker::PhantomData<T>);
            )),
            none
        );
        assert_eq!(
            of(&parse_quote!(
                struct S<T>(fn(T) -> T, Box<dyn Of<T>>);
            )),
            none
        );
        assert_eq!(
            of(&parse_quote!(
                struct S<T, U, V>([U; 2], Vec<(u8, Option<T>)>);
            )),
            ["T", "U"]
        );
        assert_eq!(
            of(&parse_quote!(
                struct S<'a, T, U>(&'a T, Box<[U]>);
            )),
            ["T", "U"]
        );
    }

    #[test]
    fn a_recursive_type_is_bounded_by_its_parameters() {
        assert_eq!(
            of(&parse_quote!(
                struct Node<T> {
                    value: T,
                    next: Option<Box<Node<T>>>,
                }
            )),
            ["T"]
        );
    }

    #[test]
    fn a_type_that_belongs_to_a_parameter_is_bounded_itself() {
        assert_eq!(
            of(&parse_quote!(
                struct S<T: Of>(T::Item, Vec<T::Item>);
            )),
            ["T::Item", "T::Item"]
        );
        let other: DeriveInput = parse_quote!(
            struct S<T>(<T as Of>::Item, <u8 as Of>::Item);
        );
        assert_eq!(of(&other), ["<TasOf>::Item"]);
    }
}
