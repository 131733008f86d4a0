//! [`Coder`]: the values of one key column as small numbers.
//!
//! **Definition.** NULL is 0; every other thing gets the next number when this reader first meets it. The numbers mean nothing outside one
//! feed: which is smaller depends on the order of rows.
//!
//! Short strings (up to 12 bytes) are told apart as one 128-bit word, their length and bytes, which is how Arrow's views hold them.

use arrow::array::{
    Array, ArrayRef, AsArray, GenericByteViewArray, GenericStringArray, OffsetSizeTrait,
    downcast_dictionary_array,
};
use arrow::datatypes::{
    ArrowNativeType, BinaryViewType, ByteViewType, DataType, Decimal128Type, StringViewType,
};

use crate::column::{Kind, Native, each_bytes, nulls, plain, words_into};
use crate::error::TallyError;
use crate::hash::Secret;
use crate::words::{NONE, Strings, Words, small};

/// The number of NULL.
const NULL: u32 = 0;

/// Numbers for the values of one column.
pub(crate) struct Coder {
    secret: Secret,
    kind: Kind,
    words: Words<u64>,
    short: Words<u128>,
    long: Strings,
    /// The numbers of the long strings.
    long_codes: Vec<u32>,
    /// The next number.
    next: u32,
    /// The dictionary met last, and the numbers of its values.
    dictionary: Option<(ArrayRef, Vec<u32>)>,
    /// Views of long strings met in this batch.
    recent: Vec<(u128, u32)>,
    scratch: Vec<u64>,
}

impl Coder {
    pub(crate) fn new(kind: Kind, secret: Secret) -> Self {
        Self {
            secret,
            kind,
            words: Words::new(),
            short: Words::new(),
            long: Strings::new(),
            long_codes: Vec::new(),
            next: NULL + 1,
            dictionary: None,
            recent: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// All numbers so far are smaller.
    pub(crate) fn len(&self) -> usize {
        self.next as usize
    }

    /// Writes the number of each value.
    pub(crate) fn encode(&mut self, array: &ArrayRef, codes: &mut Vec<u32>) -> Result<(), TallyError> {
        codes.clear();
        small(self.next as usize + array.len(), "keys")?;
        let dynamic = array.as_ref();
        downcast_dictionary_array!(
            dynamic => {
                if dynamic.values().len() > array.len() && !self.knows(dynamic.values()) {
                    return self.encode_plain(&plain(array)?, codes);
                }
                let numbers = self.of_dictionary(dynamic.values())?;
                let keys = dynamic.keys();
                let of = |key: usize| numbers.get(key).copied().unwrap_or(NULL);
                match keys.nulls() {
                    None => codes.extend(keys.values().iter().map(|key| of(key.as_usize()))),
                    Some(valid) => codes.extend(
                        keys.values().iter().zip(valid).map(|(key, valid)| if valid { of(key.as_usize()) } else { NULL }),
                    ),
                }
                Ok(())
            },
            _ => self.encode_plain(array, codes)
        )
    }

    /// Whether these are the values met last: the same memory, which is held and so cannot have become another's.
    fn knows(&self, values: &ArrayRef) -> bool {
        matches!(&self.dictionary, Some((known, _)) if known.to_data().ptr_eq(&values.to_data()))
    }

    /// The numbers of a dictionary's values.
    fn of_dictionary(&mut self, values: &ArrayRef) -> Result<&[u32], TallyError> {
        if !self.knows(values) {
            let mut numbers = self.dictionary.take().map(|(_, numbers)| numbers).unwrap_or_default();
            numbers.clear();
            small(self.next as usize + values.len(), "keys")?;
            self.encode_plain(values, &mut numbers)?;
            self.dictionary = Some((values.clone(), numbers));
        }
        Ok(self.dictionary.as_ref().map_or(&[], |(_, numbers)| numbers))
    }

    fn encode_plain(&mut self, array: &ArrayRef, codes: &mut Vec<u32>) -> Result<(), TallyError> {
        match self.kind {
            Kind::Nothing => codes.resize(array.len(), NULL),
            Kind::Word(native) => self.encode_words(array, native, codes),
            Kind::Wide => {
                for value in array.as_primitive::<Decimal128Type>() {
                    codes.push(value.map_or(NULL, |value| self.short(value as u128)));
                }
            }
            Kind::Bytes => match array.data_type() {
                DataType::Utf8View => self.encode_views::<StringViewType>(array.as_byte_view(), codes)?,
                DataType::BinaryView => self.encode_views::<BinaryViewType>(array.as_byte_view(), codes)?,
                DataType::Utf8 => self.encode_strings(array.as_string::<i32>(), codes)?,
                DataType::LargeUtf8 => self.encode_strings(array.as_string::<i64>(), codes)?,
                _ => {
                    codes.resize(array.len(), NULL);
                    each_bytes(array, |row, bytes| {
                        codes[row] = self.string(bytes)?;
                        Ok(())
                    })?;
                }
            },
        }
        Ok(())
    }

    fn encode_strings<O: OffsetSizeTrait>(
        &mut self,
        array: &GenericStringArray<O>,
        codes: &mut Vec<u32>,
    ) -> Result<(), TallyError> {
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        codes.reserve(array.len());
        for (row, ends) in array.value_offsets().windows(2).enumerate() {
            let [start, end] = [ends[0].as_usize(), ends[1].as_usize()];
            // Beyond a short string lie the bytes of the next ones, which can be read at once and struck out.
            let beginning =
                array.value_data().get(start..start + SHORT).and_then(|bytes| bytes.first_chunk());
            let code = match beginning {
                _ if nulls.is_some_and(|nulls| nulls.is_null(row)) => NULL,
                Some(bytes) if end - start <= SHORT => self.short(view_of(*bytes, end - start)),
                _ => self.string(&array.value_data()[start..end])?,
            };
            codes.push(code);
        }
        Ok(())
    }

    fn encode_words(&mut self, array: &ArrayRef, native: Native, codes: &mut Vec<u32>) {
        let mut scratch = std::mem::take(&mut self.scratch);
        words_into(array, native, &mut scratch);
        let mut next = self.next;
        let mut number = |word: u64| {
            let code = self.words.number(word, next, &self.secret);
            next += u32::from(code == next);
            code
        };
        match nulls(array) {
            None => codes.extend(scratch.iter().map(|&word| number(word))),
            Some(valid) => codes.extend(
                scratch
                    .iter()
                    .zip(valid.inner())
                    .map(|(&word, valid)| if valid { number(word) } else { NULL }),
            ),
        }
        self.next = next;
        self.scratch = scratch;
    }

    fn encode_views<T: ByteViewType>(
        &mut self,
        array: &GenericByteViewArray<T>,
        codes: &mut Vec<u32>,
    ) -> Result<(), TallyError>
    where
        T::Native: AsRef<[u8]>,
    {
        self.recent.clear();
        let short = |view: &u128| *view as u32 <= SHORT as u32;
        if array.null_count() == 0 && array.views().iter().all(short) {
            let Self { short, secret, next, .. } = self;
            codes.extend(array.views().iter().map(|&view| {
                let code = short.number(view & SHORT_BYTES[view as usize % 16], *next, secret);
                *next += u32::from(code == *next);
                code
            }));
            return Ok(());
        }
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        codes.reserve(array.len());
        for (row, &view) in array.views().iter().enumerate() {
            let length = view as u32;
            let code = if nulls.is_some_and(|nulls| nulls.is_null(row)) {
                NULL
            } else if length <= SHORT as u32 {
                let next = self.next;
                let code = self.short.number(view & SHORT_BYTES[length as usize], next, &self.secret);
                self.next = next + u32::from(code == next);
                code
            } else {
                self.long_view(view, array.value(row).as_ref())?
            };
            codes.push(code);
        }
        Ok(())
    }

    /// A long string by its view, which says where its bytes are and so cannot mean two strings within one batch.
    fn long_view(&mut self, view: u128, bytes: &[u8]) -> Result<u32, TallyError> {
        self.recent.resize(256, (0, NONE));
        let at = (self.secret.wide(view) >> 56) as usize;
        if self.recent[at] == (view, self.recent[at].1) && self.recent[at].1 != NONE {
            return Ok(self.recent[at].1);
        }
        let code = self.string(bytes)?;
        self.recent[at] = (view, code);
        Ok(code)
    }

    fn string(&mut self, bytes: &[u8]) -> Result<u32, TallyError> {
        if bytes.len() <= SHORT {
            let mut beginning = [0; SHORT];
            beginning[..bytes.len()].copy_from_slice(bytes);
            return Ok(self.short(view_of(beginning, bytes.len())));
        }
        let number = self.long.number(bytes, self.secret.bytes(bytes))? as usize;
        if number == self.long_codes.len() {
            self.long_codes.push(self.next);
            self.next += 1;
        }
        Ok(self.long_codes[number])
    }

    #[inline]
    fn short(&mut self, word: u128) -> u32 {
        let code = self.short.number(word, self.next, &self.secret);
        self.next += u32::from(code == self.next);
        code
    }
}

/// How many bytes a view holds itself.
const SHORT: usize = 12;

/// Which bits of a view mean something, given how many bytes it holds itself: its length, and the bytes.
const SHORT_BYTES: [u128; 16] = {
    let mut bytes = [u128::MAX; 16];
    let mut length = 0;
    while length < SHORT {
        bytes[length] = u128::MAX >> (8 * (SHORT - length));
        length += 1;
    }
    bytes
};

/// The view of a short string, given bytes that begin with it.
#[inline]
fn view_of(bytes: [u8; SHORT], length: usize) -> u128 {
    let mut view = [0; 16];
    view[4..].copy_from_slice(&bytes);
    (u128::from_le_bytes(view) | length as u128) & SHORT_BYTES[length % 16]
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{StringArray, StringViewArray};
    use std::sync::Arc;

    #[test]
    fn equal_strings_have_one_code_whatever_follows_them() {
        let long = "a string of more than twelve bytes";
        let names =
            vec![Some("ab"), Some("abc"), None, Some("ab"), Some(long), Some(""), Some("ab"), Some(long)];
        let arrays: [ArrayRef; 2] =
            [Arc::new(StringArray::from(names.clone())), Arc::new(StringViewArray::from(names))];
        for array in arrays {
            let mut codes = Vec::new();
            Coder::new(Kind::Bytes, Secret::new([1, 2])).encode(&array, &mut codes).unwrap();
            assert_eq!(codes, [1, 2, NULL, 1, 3, 4, 1, 3]);
        }
    }
}
