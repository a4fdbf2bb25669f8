//! The tree of a page, for the extractors: html5ever's, made as far as memory and time allow (P2).
//!
//! A tree builder makes more than the markup holds: formatting that was left open is made anew in
//! every paragraph, so four bytes may give hundreds of elements. So what it makes is counted as it
//! makes it, and it is fed in pieces; between two of them it can be stopped.

use std::borrow::Cow;
use std::cell::{Cell, Ref};

use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::tree_builder::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::{Attribute, ParseOpts, QualName, parse_document};
use scraper::{Html, HtmlTreeSink, Node};

use super::memory::Memory;
use crate::types::Reason;

/// Bytes that the builder is given at once.
const PIECE_BYTES: usize = 512;
/// What a node costs: itself with its neighbours' numbers, in a list that grows by doubling.
const NODE_BYTES: usize = 3 * (size_of::<Node>() + 6 * size_of::<usize>());
/// What an attribute costs beside its value, where the builder keeps a copy of its tag.
const ATTRIBUTE_BYTES: usize = 3 * size_of::<Attribute>();
/// What a byte of `class` may cost: each name becomes an entry of a table when it is looked for.
const CLASS_FACTOR: usize = 16;

/// The tree, or the limit that it would cross.
pub(super) fn build(
    html: &str,
    bytes_max: usize,
    out_of_time: &dyn Fn() -> bool,
) -> Result<Html, Reason> {
    let sink = Counting { inner: HtmlTreeSink::new(Html::new_document()), bytes: Cell::new(0) };
    let mut parser = parse_document(sink, ParseOpts::default());
    let mut rest = html;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
        parser.process(piece.into());
        if parser.tokenizer.sink.sink.bytes.get() > bytes_max {
            return Err(Memory::reason(bytes_max, "extract: a tree"));
        }
        if out_of_time() {
            return Err(Reason::ParseLimit { limit: "parse.max_time".to_owned() });
        }
        rest = after;
    }
    Ok(parser.finish())
}

/// Counts what is made, in bytes, and has it made by another.
struct Counting {
    inner: HtmlTreeSink,
    bytes: Cell<usize>,
}

impl Counting {
    fn count(&self, bytes: usize) {
        self.bytes.set(self.bytes.get().saturating_add(bytes));
    }

    fn count_attributes(&self, attributes: &[Attribute]) {
        for attribute in attributes {
            let name = &attribute.name.local;
            let factor = if &**name == "class" { CLASS_FACTOR } else { 1 };
            let value = attribute.value.len().saturating_mul(factor);
            self.count(ATTRIBUTE_BYTES + name.len() + value);
        }
    }

    fn count_child(&self, child: &NodeOrText<<HtmlTreeSink as TreeSink>::Handle>) {
        if let NodeOrText::AppendText(text) = child {
            self.count(NODE_BYTES + text.len());
        }
    }
}

impl TreeSink for Counting {
    type Handle = <HtmlTreeSink as TreeSink>::Handle;
    type Output = Html;
    type ElemName<'a> = Ref<'a, QualName>;

    fn finish(self) -> Html {
        self.inner.finish()
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> Self::Handle {
        self.inner.get_document()
    }

    fn elem_name<'a>(&'a self, target: &'a Self::Handle) -> Ref<'a, QualName> {
        self.inner.elem_name(target)
    }

    fn create_element(
        &self,
        name: QualName,
        attributes: Vec<Attribute>,
        flags: ElementFlags,
    ) -> Self::Handle {
        self.count(NODE_BYTES + name.local.len());
        self.count_attributes(&attributes);
        self.inner.create_element(name, attributes, flags)
    }

    fn create_comment(&self, text: StrTendril) -> Self::Handle {
        self.count(NODE_BYTES + text.len());
        self.inner.create_comment(text)
    }

    fn create_pi(&self, target: StrTendril, data: StrTendril) -> Self::Handle {
        self.count(NODE_BYTES + target.len() + data.len());
        self.inner.create_pi(target, data)
    }

    fn append(&self, parent: &Self::Handle, child: NodeOrText<Self::Handle>) {
        self.count_child(&child);
        self.inner.append(parent, child);
    }

    fn append_based_on_parent_node(
        &self,
        element: &Self::Handle,
        before: &Self::Handle,
        child: NodeOrText<Self::Handle>,
    ) {
        self.count_child(&child);
        self.inner.append_based_on_parent_node(element, before, child);
    }

    fn append_doctype_to_document(&self, name: StrTendril, public: StrTendril, system: StrTendril) {
        self.count(NODE_BYTES + name.len() + public.len() + system.len());
        self.inner.append_doctype_to_document(name, public, system);
    }

    fn get_template_contents(&self, target: &Self::Handle) -> Self::Handle {
        self.inner.get_template_contents(target)
    }

    fn same_node(&self, one: &Self::Handle, other: &Self::Handle) -> bool {
        one == other
    }

    fn set_quirks_mode(&self, mode: QuirksMode) {
        self.inner.set_quirks_mode(mode);
    }

    fn append_before_sibling(&self, sibling: &Self::Handle, child: NodeOrText<Self::Handle>) {
        self.count_child(&child);
        self.inner.append_before_sibling(sibling, child);
    }

    fn add_attrs_if_missing(&self, target: &Self::Handle, attributes: Vec<Attribute>) {
        self.count_attributes(&attributes);
        self.inner.add_attrs_if_missing(target, attributes);
    }

    fn remove_from_parent(&self, target: &Self::Handle) {
        self.inner.remove_from_parent(target);
    }

    fn reparent_children(&self, node: &Self::Handle, parent: &Self::Handle) {
        self.inner.reparent_children(node, parent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: &dyn Fn() -> bool = &|| false;

    #[test]
    fn a_tree_made_in_pieces_is_the_one_made_at_once() {
        for page in [
            "<!doctype html><p class='a b'>é<b>x<p>y</b>z<table><tr>cell<td>é</table><!-- c -->",
            "<svg><title>t</title></svg><template><i>in</i></template><script>a<b</script>",
        ] {
            for gap in 0..PIECE_BYTES {
                let html = format!("{}{page}", " é".repeat(gap));
                let at_once = Html::parse_document(&html).html();
                let in_pieces = build(&html, usize::MAX, NEVER).unwrap().html();
                assert_eq!(in_pieces, at_once);
            }
        }
    }

    /// Two hundred fonts are made anew for each of the paragraphs.
    #[test]
    fn what_the_builder_makes_of_itself_counts() {
        let fonts: String = (0..200).map(|n| format!("<font n={n}>")).collect();
        let html = format!("<p>{fonts}{}", "<p>x".repeat(100_000));
        let bytes_max = 32 << 20;
        let asked = Cell::new(0_usize);
        let ask = || {
            asked.set(asked.get() + 1);
            false
        };
        let cut = build(&html, bytes_max, &ask).err();
        assert_eq!(cut, Some(Memory::reason(bytes_max, "extract: a tree")));
        assert!(asked.get() < 20, "it goes on for {} pieces", asked.get());
    }

    #[test]
    fn time_is_asked_for_between_two_pieces() {
        let late = build(&"<p>x".repeat(1000), usize::MAX, &|| true).err();
        assert_eq!(late, Some(Reason::ParseLimit { limit: "parse.max_time".to_owned() }));
    }
}
