//! What private questions find out, written into demur.toml; everything else in it stays as it is.

use demur_engine::Project;
use demur_plan::catalog::FILE;
use toml_edit::{DocumentMut, Item, TableLike};

use crate::failure::Failure;

/// Changes the table that these names lead to; `yourself` is said if that fails, since what was found was paid for.
pub(crate) fn rewrite(
    project: &Project,
    names: &[&str],
    yourself: &str,
    change: impl FnOnce(&mut dyn TableLike),
) -> Result<(), Failure> {
    let path = project.folder.join(FILE);
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::new("cli.rewrite", format!("`{}` cannot be changed: {error}", path.display()))
            .hint(format!("write {yourself} yourself"))
    };
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(&error))?;
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| wrong(&error))?;
    let table = names
        .iter()
        .try_fold(document.as_item_mut(), |item, name| item.get_mut(name))
        .and_then(Item::as_table_like_mut)
        .ok_or_else(|| wrong(&format!("there is no {} in it any more", names.join("."))))?;
    change(table);
    let draft = path.with_extension("toml.draft");
    std::fs::write(&draft, document.to_string()).map_err(|error| wrong(&error))?;
    std::fs::rename(&draft, &path).map_err(|error| wrong(&error))
}
