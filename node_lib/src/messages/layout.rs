//! A field table that the compiler checks, and the conversions every message has.

/// Declares the fixed part of a message as its field table: offset, name, bytes.
///
/// The offsets and the total are compared with the fields at compile time, and `parse` takes the
/// struct apart without `..`: a row that is missing, misplaced or unread does not compile.
macro_rules! layout {
    (
        $(#[$meta:meta])*
        struct $name:ident: $len:ident {
            $( $offset:literal $field:ident: $size:literal, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy)]
        #[repr(C)]
        struct $name {
            $( $field: [u8; $size], )*
        }

        const _: () = {
            $( assert!(::core::mem::offset_of!($name, $field) == $offset); )*
            assert!(::core::mem::size_of::<$name>() == $len);
        };

        impl $name {
            /// Rows of the table: parts of the nested form.
            const FIELDS: usize = [$( $offset as usize, )*].len();

            /// The fields and what follows them; `None` when there are too few bytes.
            #[inline]
            fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
                let rest = bytes;
                $( let (&$field, rest) = rest.split_first_chunk::<$size>()?; )*
                Some((Self { $( $field, )* }, rest))
            }

            /// Appends the fields, each where it belongs. Put together on the stack and copied as a
            /// whole they took longer: docs/performance.md.
            #[inline]
            fn append(self, out: &mut Vec<u8>) {
                let start = out.len();
                out.extend_from_slice(&[0; $len]);
                let rest = out.get_mut(start..).unwrap_or_default();
                $( let rest = $crate::messages::layout::put(rest, self.$field); )*
                debug_assert!(rest.is_empty(), "the table has as many bytes as the constant says");
            }

            fn push_parts(self, parts: &mut Vec<Vec<u8>>) {
                parts.reserve(Self::FIELDS);
                $( parts.push(self.$field.to_vec()); )*
            }
        }
    };
}

/// Writes to the front of `room` and returns what is left of it.
#[inline]
pub(super) fn put<const N: usize>(room: &mut [u8], bytes: [u8; N]) -> &mut [u8] {
    match room.split_first_chunk_mut::<N>() {
        Some((front, rest)) => {
            *front = bytes;
            rest
        }
        // The table's compile-time check rules this out.
        None => &mut [],
    }
}

/// `wire_len`, `emit` and `push_parts` of messages that end with their fields, in terms of `wire`.
macro_rules! fixed_size {
    ($($name:ty: $len:ident),* $(,)?) => {
        $(
            impl $name {
                /// Bytes on the wire, prefix included.
                #[inline]
                pub const fn wire_len(&self) -> usize {
                    $len
                }

                /// Appends the message.
                #[inline]
                pub fn emit(&self, out: &mut Vec<u8>) {
                    self.wire().append(out);
                }

                pub(crate) fn push_parts(&self, parts: &mut Vec<Vec<u8>>) {
                    self.wire().push_parts(parts);
                }
            }
        )*
    };
}

/// `Vec<u8>` (flat) and `Vec<Vec<u8>>` (nested) from a reference, in terms of `wire_len`, `emit`
/// and `push_parts`.
macro_rules! conversions {
    ($($name:ty),* $(,)?) => {
        $(
            /// The flat form: one allocation of the exact size.
            impl From<&$name> for Vec<u8> {
                #[inline]
                fn from(message: &$name) -> Self {
                    let mut flat = Vec::with_capacity(message.wire_len());
                    message.emit(&mut flat);
                    flat
                }
            }

            /// The nested form: one part per row of the field table.
            impl From<&$name> for Vec<Vec<u8>> {
                fn from(message: &$name) -> Self {
                    let mut parts = Vec::new();
                    message.push_parts(&mut parts);
                    parts
                }
            }
        )*
    };
}
