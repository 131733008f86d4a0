//! Weights as safetensors files: what other programs read too.
//!
//! **Form.** Eight bytes with the length of a JSON header, lowest first; the header, which names for each tensor its type, shape and place; then the numbers. The crate of
//! that name would do the same, but asks features of serde_json that make everything else build anew.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::network::Network;
use crate::LearnError;
use crate::error::require;

/// The name under which a header keeps texts.
const METADATA: &str = "__metadata__";
/// Headers are padded to a multiple of this, so that numbers are aligned.
const ALIGNMENT: usize = 8;

fn broken(what: impl std::fmt::Display) -> LearnError {
    LearnError::new("learn.file", format!("this is no file of a network as demur writes it: {what}"))
}

/// Where a tensor is, and what it looks like.
#[derive(Serialize, Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (usize, usize),
}

/// What a header holds under one name.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Part {
    Tensor(Entry),
    Metadata(BTreeMap<String, String>),
}

/// Tensors under `group.layer`, the network and facts in the metadata.
pub(crate) fn write(
    network: &Network,
    groups: &[(&str, &[Vec<f32>])],
    facts: &[(&str, String)],
) -> Result<Vec<u8>, LearnError> {
    let mut header = BTreeMap::new();
    let mut numbers: Vec<u8> = Vec::new();
    for (group, tensors) in groups {
        for ((layer, tensor), (rows, columns)) in tensors.iter().enumerate().zip(network.matrices()) {
            if !tensor.is_empty() {
                let start = numbers.len();
                numbers.extend(tensor.iter().flat_map(|weight| weight.to_le_bytes()));
                let data_offsets = (start, numbers.len());
                let entry = Entry { dtype: "F32".to_owned(), shape: vec![rows, columns], data_offsets };
                header.insert(format!("{group}.{layer}"), Part::Tensor(entry));
            }
        }
    }
    let facts = facts.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    let metadata = facts.chain([("network".to_owned(), network.to_string())]).collect();
    header.insert(METADATA.to_owned(), Part::Metadata(metadata));
    let mut header =
        serde_json::to_vec(&header).map_err(|_| LearnError::ours("weights could not be written"))?;
    header.resize(header.len().next_multiple_of(ALIGNMENT), b' ');
    Ok([(header.len() as u64).to_le_bytes().as_slice(), &header, &numbers].concat())
}

/// A file that was read, and the network it is for.
pub(crate) struct File<'a> {
    pub(crate) network: Network,
    metadata: BTreeMap<String, String>,
    entries: BTreeMap<String, Entry>,
    numbers: &'a [u8],
}

impl<'a> File<'a> {
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, LearnError> {
        let (length, rest) = bytes.split_first_chunk().ok_or_else(|| broken("it is too short"))?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(broken)?;
        let (header, numbers) = rest.split_at_checked(length).ok_or_else(|| broken("it is cut off"))?;
        let header: BTreeMap<String, Part> = serde_json::from_slice(header).map_err(broken)?;
        let (mut metadata, mut entries) = (None, BTreeMap::new());
        for (name, part) in header {
            match part {
                Part::Metadata(texts) if name == METADATA => metadata = Some(texts),
                Part::Metadata(_) => return Err(broken(format!("`{name}` is no tensor"))),
                Part::Tensor(entry) => drop(entries.insert(name, entry)),
            }
        }
        let metadata = metadata.ok_or_else(|| broken("its metadata are missing"))?;
        let network = metadata.get("network").ok_or_else(|| broken("it names no network"))?.parse()?;
        Ok(Self { network, metadata, entries, numbers })
    }

    pub(crate) fn fact(&self, name: &str) -> Result<&str, LearnError> {
        self.metadata.get(name).map(String::as_str).ok_or_else(|| broken(format!("{name} is missing")))
    }

    /// All tensors of a group, one for each layer.
    pub(crate) fn tensors(&self, group: &str) -> Result<Vec<Vec<f32>>, LearnError> {
        let read = |(layer, (rows, columns)): (usize, (usize, usize))| {
            if rows * columns == 0 {
                return Ok(Vec::new());
            }
            let name = format!("{group}.{layer}");
            let entry = self.entries.get(&name).ok_or_else(|| broken(format!("`{name}` is missing")))?;
            let (start, end) = entry.data_offsets;
            let bytes =
                self.numbers.get(start..end).ok_or_else(|| broken("a layer lies outside the file"))?;
            let (numbers, rest) = bytes.as_chunks();
            let fits = entry.dtype == "F32" && entry.shape == [rows, columns];
            require(fits && rest.is_empty() && numbers.len() == rows * columns, "learn.file", || {
                broken("a layer has weights of another shape").to_string()
            })?;
            Ok(numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
        };
        self.network.matrices().enumerate().map(read).collect()
    }
}
