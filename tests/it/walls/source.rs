//! A source file as the rules see it: parsed, without what is compiled for tests alone.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};

/// A parsed file of a crate.
pub(crate) struct Source {
    /// Relative to the workspace.
    pub(crate) path: PathBuf,
    file: syn::File,
}

impl Source {
    /// Parses `text`, and forgets its tests.
    pub(crate) fn parse(path: &Path, text: &str) -> Self {
        let mut file = syn::parse_file(text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        WithoutTests.visit_file_mut(&mut file);
        Self { path: path.to_path_buf(), file }
    }

    /// The same file with more at its end; it is not parsed again.
    pub(crate) fn with(&self, planted: &str) -> Self {
        let mut file = self.file.clone();
        file.items.extend(syn::parse_file(planted).expect("what is planted parses").items);
        WithoutTests.visit_file_mut(&mut file);
        Self { path: self.path.clone(), file }
    }

    /// All paths that it names, of imports and of code, as written: `std::fs::read`.
    pub(crate) fn paths(&self) -> Vec<(usize, Vec<String>)> {
        let mut paths = Paths(Vec::new());
        paths.visit_file(&self.file);
        paths.0
    }

    /// Lines on which something is awaited.
    pub(crate) fn awaits(&self) -> Vec<usize> {
        let mut awaits = Awaits(Vec::new());
        awaits.visit_file(&self.file);
        awaits.0
    }

    /// What its string literals say, those in macros and attributes too, and the help texts of its command line.
    pub(crate) fn texts(&self) -> Vec<(usize, String)> {
        let mut texts = Texts { found: Vec::new(), is_help: false };
        texts.visit_file(&self.file);
        texts.found
    }

    /// Modules of the same crate that it names, as paths from the crate's root, in the order of the alphabet.
    pub(crate) fn siblings(&self) -> BTreeSet<Vec<String>> {
        let own = module_of(&self.path);
        let children = self.children();
        let absolute = |(_, path): &(usize, Vec<String>)| {
            let is_child = path.first().is_some_and(|first| children.contains(first));
            if is_child { Some([&own[..], path].concat()) } else { absolute(&own, path) }
        };
        self.paths().iter().filter_map(absolute).collect()
    }

    /// The modules below it, which it can name without saying where they are.
    fn children(&self) -> BTreeSet<String> {
        let module = |item: &syn::Item| match item {
            syn::Item::Mod(module) => Some(module.ident.to_string()),
            _ => None,
        };
        self.file.items.iter().filter_map(module).collect()
    }
}

/// The module that a file of `…/src` is.
pub(crate) fn module_of(path: &Path) -> Vec<String> {
    let mut parts: Vec<String> = path
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .skip_while(|part| part != "src")
        .skip(1)
        .collect();
    if let Some(last) = parts.pop() {
        let stem = last.strip_suffix(".rs").unwrap_or(&last);
        if !matches!(stem, "lib" | "main") {
            parts.push(stem.to_owned());
        }
    }
    parts
}

/// A path that begins in our own crate, from its root.
fn absolute(own: &[String], path: &[String]) -> Option<Vec<String>> {
    let first = path.first()?;
    if first == "crate" {
        return Some(path[1..].to_vec());
    }
    let n_up = path.iter().take_while(|part| *part == "super").count();
    if n_up == 0 && first != "self" {
        return None;
    }
    let above = own.get(..own.len().checked_sub(n_up)?)?;
    let rest = path.iter().filter(|part| *part != "super" && *part != "self");
    Some(above.iter().chain(rest).cloned().collect())
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_test_cfg = attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|condition| condition == "test");
        is_test_cfg || attribute.path().is_ident("test")
    })
}

struct WithoutTests;

impl VisitMut for WithoutTests {
    fn visit_file_mut(&mut self, file: &mut syn::File) {
        file.items.retain(|item| !is_for_tests(item_attributes(item)));
        visit_mut::visit_file_mut(self, file);
    }

    fn visit_item_mod_mut(&mut self, module: &mut syn::ItemMod) {
        if let Some((_, items)) = &mut module.content {
            items.retain(|item| !is_for_tests(item_attributes(item)));
        }
        visit_mut::visit_item_mod_mut(self, module);
    }

    fn visit_item_impl_mut(&mut self, block: &mut syn::ItemImpl) {
        block.items.retain(|item| match item {
            syn::ImplItem::Fn(item) => !is_for_tests(&item.attrs),
            syn::ImplItem::Const(item) => !is_for_tests(&item.attrs),
            _ => true,
        });
        visit_mut::visit_item_impl_mut(self, block);
    }
}

fn item_attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

struct Texts {
    found: Vec<(usize, String)>,
    /// Inside a type of the command line: its documentation is its help.
    is_help: bool,
}

impl Texts {
    fn add(&mut self, text: &syn::LitStr) {
        self.found.push((text.span().start().line, text.value()));
    }

    fn add_tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.add_tokens(group.stream()),
                TokenTree::Literal(literal) => {
                    if let syn::Lit::Str(text) = syn::Lit::new(literal) {
                        self.add(&text);
                    }
                }
                _ => {}
            }
        }
    }

    /// Looks into a type with its documentation if it is one of the command line.
    fn within(&mut self, attributes: &[syn::Attribute], visit: impl FnOnce(&mut Self)) {
        let derives = |attribute: &&syn::Attribute| attribute.path().is_ident("derive");
        let is_parsed = attributes.iter().filter(derives).any(|attribute| {
            let names = attribute.meta.require_list().map(|list| list.tokens.to_string()).unwrap_or_default();
            ["Args", "Parser", "Subcommand", "ValueEnum"].iter().any(|name| names.contains(name))
        });
        self.is_help = is_parsed;
        visit(self);
        self.is_help = false;
    }
}

impl<'ast> Visit<'ast> for Texts {
    fn visit_lit_str(&mut self, text: &'ast syn::LitStr) {
        self.add(text);
    }

    fn visit_macro(&mut self, macro_call: &'ast syn::Macro) {
        self.add_tokens(macro_call.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        match &attribute.meta {
            syn::Meta::NameValue(pair) if attribute.path().is_ident("doc") && self.is_help => {
                visit::visit_expr(self, &pair.value);
            }
            // A reason for a lint is for us.
            syn::Meta::List(list) if !attribute.path().is_ident("expect") => {
                self.add_tokens(list.tokens.clone())
            }
            _ => {}
        }
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.within(&item.attrs, |texts| visit::visit_item_struct(texts, item));
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.within(&item.attrs, |texts| visit::visit_item_enum(texts, item));
    }
}

struct Paths(Vec<(usize, Vec<String>)>);

impl Paths {
    fn add_tree(&mut self, before: &[String], tree: &syn::UseTree) {
        let with = |ident: &syn::Ident| before.iter().cloned().chain([ident.to_string()]).collect::<Vec<_>>();
        match tree {
            syn::UseTree::Path(path) => self.add_tree(&with(&path.ident), &path.tree),
            syn::UseTree::Name(name) => self.0.push((name.ident.span().start().line, with(&name.ident))),
            syn::UseTree::Rename(name) => self.0.push((name.ident.span().start().line, with(&name.ident))),
            syn::UseTree::Glob(glob) => self.0.push((glob.star_token.spans[0].start().line, before.to_vec())),
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.add_tree(before, tree)),
        }
    }

    /// What stands in a macro is not parsed: `a :: b` is looked for.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let (mut line, mut n_colons) = (0, 0);
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' => n_colons += 1,
                TokenTree::Ident(ident) => {
                    if n_colons != 2 {
                        self.0.extend((path.len() > 1).then(|| (line, path.clone())));
                        path.clear();
                    }
                    (line, n_colons) = (ident.span().start().line, 0);
                    path.push(ident.to_string());
                }
                other => {
                    self.0.extend((path.len() > 1).then(|| (line, path.clone())));
                    path.clear();
                    n_colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.add_tokens(group.stream());
                    }
                }
            }
        }
        self.0.extend((path.len() > 1).then(|| (line, path.clone())));
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.add_tree(&[], &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let line = path.segments.first().map_or(0, |segment| segment.ident.span().start().line);
        self.0.push((line, parts));
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.add_tokens(called.tokens.clone());
        visit::visit_macro(self, called);
    }

    // What an attribute names is no code: `derive`, `serde`.
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    // `pub(in crate::x)` is no import.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}
}

struct Awaits(Vec<usize>);

impl<'ast> Visit<'ast> for Awaits {
    fn visit_expr_await(&mut self, expression: &'ast syn::ExprAwait) {
        self.0.push(expression.await_token.span.start().line);
        visit::visit_expr_await(self, expression);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        find_awaits(called.tokens.clone(), &mut self.0);
    }
}

fn find_awaits(tokens: TokenStream, found: &mut Vec<usize>) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) if ident == "await" => found.push(ident.span().start().line),
            TokenTree::Group(group) => find_awaits(group.stream(), found),
            _ => {}
        }
    }
}
