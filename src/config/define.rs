//! How a table of the configuration is defined: `section!` and `table!`.

/// A table of the configuration: struct, reading, showing.
///
/// Fields are written `/// Meaning.` `name: Type = default, option(arguments), …;`, without a
/// default where they are required; the options are the builders of [`super::keys::Field`].
macro_rules! table {
    (
        $(#[doc = $about:literal])*
        pub struct $table:ident {
            $(
                $(#[doc = $doc:literal])*
                $name:ident: $type:ty $(= $default:expr)? $(, $option:ident($($argument:expr),*))*;
            )*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $table {
            $( $(#[doc = $doc])* pub $name: $type, )*
        }

        impl $table {
            fn entries(this: Option<&Self>) -> Vec<$crate::config::keys::Entry> {
                vec![$(
                    $crate::config::keys::Field::<$type>::new(stringify!($name), &[$($doc),*])
                        $(.default($default))?
                        $(.$option($($argument),*))*
                        .entry(this.map(|this| &this.$name)),
                )*]
            }
        }

        impl $crate::config::keys::Setting for $table {
            const TABLE: bool = true;

            fn wanted() -> String {
                let names: Vec<_> = Self::entries(None).iter().map(|entry| entry.name).collect();
                format!("a table of {}", names.join(", "))
            }

            fn read(
                found: &$crate::config::keys::Found<'_>,
                faults: &mut $crate::config::faults::Faults,
            ) -> Option<Self> {
                let mut reader = $crate::config::reader::Reader::open(found, faults)?;
                $(
                    let $name = reader.field(
                        $crate::config::keys::Field::<$type>::new(
                            stringify!($name),
                            &[$($doc),*],
                        )
                        $(.default($default))?
                        $(.$option($($argument),*))*
                    );
                )*
                reader.refuse_unknown(&Self::entries(None));
                let this = Self { $($name: $name?,)* };
                $crate::config::reader::Checked::check(&this, &mut reader.check());
                Some(this)
            }

            fn show(&self) -> $crate::config::keys::Shown {
                $crate::config::keys::Shown::Table(Self::entries(Some(self)))
            }

            fn inner() -> Vec<$crate::config::keys::Entry> {
                Self::entries(None)
            }
        }
    };
}

/// A [`table!`] in which every key has a default, and so the table has one.
macro_rules! section {
    (
        $(#[doc = $about:literal])*
        pub struct $table:ident {
            $(
                $(#[doc = $doc:literal])*
                $name:ident: $type:ty = $default:expr $(, $option:ident($($argument:expr),*))*;
            )*
        }
    ) => {
        $crate::config::define::table! {
            $(#[doc = $about])*
            pub struct $table {
                $(
                    $(#[doc = $doc])*
                    $name: $type = $default $(, $option($($argument),*))*;
                )*
            }
        }

        impl Default for $table {
            fn default() -> Self {
                Self { $($name: $default,)* }
            }
        }
    };
}

pub(super) use {section, table};
