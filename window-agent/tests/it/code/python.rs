//! The four tools on a small Python project, served by ty.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::place::Place;

const SHOP: &str = "import math\n\n\n# What things cost.\nPRICES = {'apple': 3}\n\n\nclass Basket:\n    \"\"\"Things.\"\"\"\n\n    size = 0\n\n    # Adds one.\n    @staticmethod\n    def add(item):\n        return price(item)\n\n    def total(self):\n        return self.add('apple') + self.size\n\n\ndef price(item):\n    return PRICES[item]\n";
const MAIN: &str = "from shop import Basket, price\n\n\ndef main():\n    basket = Basket()\n    print(basket.total(), price('apple'))\n\n\nmain()\n";

fn shop() -> Place {
    Place::new(&[
        ("shop.py", SHOP),
        ("app/main.py", MAIN),
        ("pyproject.toml", "[project]\nname = 'shop'\nversion = '1'\n"),
    ])
}

async fn check(place: &Place, tool: &str, arguments: Value, expected: Expect) {
    let answer = place.call(tool, arguments).await.to_string();
    expected.assert_eq(&answer.replace(place.root.to_str().unwrap(), "ROOT"));
}

#[tokio::test]
async fn an_outline_is_as_the_document_says() {
    let place = shop();
    check(&place, "lcp_get_outline", json!({"file_path": "shop.py"}), expect![[r#"{"data":[{"kind":"constant","name":"PRICES","range":{"end":{"character":21,"line":5},"start":{"character":0,"line":5}}},{"children":[{"kind":"field","name":"size","range":{"end":{"character":12,"line":11},"start":{"character":4,"line":11}}},{"kind":"method","name":"add","range":{"end":{"character":26,"line":16},"start":{"character":4,"line":14}}},{"kind":"method","name":"total","range":{"end":{"character":44,"line":19},"start":{"character":4,"line":18}}}],"kind":"class","name":"Basket","range":{"end":{"character":44,"line":19},"start":{"character":0,"line":8}}},{"kind":"function","name":"price","range":{"end":{"character":23,"line":23},"start":{"character":0,"line":22}}}],"file":"shop.py","freshness":"settled","hash":805374827,"n_lines":23,"source":"ty","success":true}"#]]).await;
    check(&place, "lcp_get_outline", json!({"file_path": "SHOP", "depth": 1, "format": "lines"}), expect![[r#"{"data":"5 PRICES\n8-19 class Basket\n22-23 function price","file":"shop.py","freshness":"settled","hash":805374827,"n_deeper":3,"n_lines":23,"source":"ty","success":true}"#]]).await;
}

#[tokio::test]
async fn a_symbol_is_read_with_its_comments() {
    let place = shop();
    let read = async |name: &str, expected: Expect| {
        check(&place, "lcp_read_symbol", json!({"file_path": "shop.py", "symbol_name": name}), expected)
            .await;
    };
    read("Basket.add", expect![[r#"{"data":"    # Adds one.\n    @staticmethod\n    def add(item):\n        return price(item)","end_line":16,"file":"shop.py","freshness":"settled","hash":805374827,"kind":"method","source":"ty","start_line":13,"success":true,"symbol":"Basket.add"}"#]]).await;
    read("PRICES", expect![[r##"{"data":"# What things cost.\nPRICES = {'apple': 3}","end_line":5,"file":"shop.py","freshness":"settled","hash":805374827,"kind":"constant","source":"ty","start_line":4,"success":true,"symbol":"PRICES"}"##]]).await;
    read("tot", expect![[r#"{"data":"    def total(self):\n        return self.add('apple') + self.size","end_line":19,"file":"shop.py","freshness":"settled","hash":805374827,"kind":"method","note":"The name was corrected to Basket.total.","source":"ty","start_line":18,"success":true,"symbol":"Basket.total"}"#]]).await;
    read("a", expect![[r#"{"data":"    # Adds one.\n    @staticmethod\n    def add(item):\n        return price(item)","end_line":16,"file":"shop.py","freshness":"settled","hash":805374827,"kind":"method","note":"The name was corrected to Basket.add.","source":"ty","start_line":13,"success":true,"symbol":"Basket.add"}"#]]).await;
    read("nothing_like_it", expect![[r#"{"code":"symbol_not_found","hint":"lcp_get_outline lists the file's symbols.","message":"There is no symbol \"nothing_like_it\" in this file.","status":"error"}"#]]).await;
}

#[tokio::test]
async fn references_are_found_in_files_that_nobody_opened() {
    let place = shop();
    let find = async |name: &str, file: &str, expected: Expect| {
        check(&place, "lcp_find_references", json!({"symbol_name": name, "context_file": file}), expected)
            .await;
    };
    find("price", "shop.py", expect![[r#"{"data":[{"code_snippet":"return price(item)","context":"def add(item): return price(item)","file":"shop.py","line":16},{"code_snippet":"def price(item):","context":"def price(item):","file":"shop.py","line":22},{"code_snippet":"from shop import Basket, price","context":"from shop import Basket, price","file":"app/main.py","line":1},{"code_snippet":"print(basket.total(), price('apple'))","context":"def main(): print(basket.total(), price('apple'))","file":"app/main.py","line":6}],"freshness":"settled","source":"ty","success":true,"symbol":"price","total":4}"#]]).await;
    find("price", "main.py", expect![[r#"{"data":[{"code_snippet":"from shop import Basket, price","context":"from shop import Basket, price","file":"app/main.py","line":1},{"code_snippet":"print(basket.total(), price('apple'))","context":"def main(): print(basket.total(), price('apple'))","file":"app/main.py","line":6},{"code_snippet":"return price(item)","context":"def add(item): return price(item)","file":"shop.py","line":16},{"code_snippet":"def price(item):","context":"def price(item):","file":"shop.py","line":22}],"freshness":"settled","source":"ty","success":true,"symbol":"price","total":4}"#]]).await;
    find("Basket.total", "shop.py", expect![[r#"{"data":[{"code_snippet":"def total(self):","context":"class Basket: def total(self):","file":"shop.py","line":18},{"code_snippet":"print(basket.total(), price('apple'))","context":"def main(): print(basket.total(), price('apple'))","file":"app/main.py","line":6}],"freshness":"settled","source":"ty","success":true,"symbol":"Basket.total","total":2}"#]]).await;
    let arguments =
        json!({"symbol_name": "price", "context_file": "shop.py", "limit": 1, "include_declaration": false});
    check(&place, "lcp_find_references", arguments, expect![[r#"{"data":[{"code_snippet":"return price(item)","context":"def add(item): return price(item)","file":"shop.py","line":16}],"freshness":"settled","more":{"app/main.py":[6]},"source":"ty","success":true,"symbol":"price","total":2}"#]]).await;
}

#[tokio::test]
async fn problems_are_those_of_now() {
    let place = shop();
    let arguments = json!({"file_path": "app/main.py"});
    check(
        &place,
        "lcp_get_diagnostics",
        arguments.clone(),
        expect![[r#"{"data":[],"freshness":"settled","source":"ty","success":true,"total":0}"#]],
    )
    .await;
    for round in 0..5 {
        place.write("shop.py", SHOP.replace("def price", &format!("def price{round}")));
        let broken = place.ok("lcp_get_diagnostics", arguments.clone()).await;
        assert_eq!(broken["total"], 1, "{broken}");
        place.write("shop.py", SHOP);
        let mended = place.ok("lcp_get_diagnostics", arguments.clone()).await;
        assert_eq!(mended["total"], 0, "{mended}");
    }
    place.write("app/new.py", "x: int = 'no'\n");
    check(&place, "lcp_get_diagnostics", json!({}), expect![[r#"{"data":[{"code":"invalid-assignment","file":"app/new.py","line":1,"message":"Object of type `Literal[\"no\"]` is not assignable to `int`","severity":"error"}],"freshness":"settled","source":"ty","success":true,"total":1}"#]]).await;
    check(&place, "lcp_get_diagnostics", json!({"severity": "error", "limit": 1}), expect![[r#"{"data":[{"code":"invalid-assignment","file":"app/new.py","line":1,"message":"Object of type `Literal[\"no\"]` is not assignable to `int`","severity":"error"}],"freshness":"settled","source":"ty","success":true,"total":1}"#]]).await;
    std::fs::remove_file(place.root.join("app/new.py")).unwrap();
    check(
        &place,
        "lcp_get_diagnostics",
        json!({}),
        expect![[r#"{"data":[],"freshness":"settled","source":"ty","success":true,"total":0}"#]],
    )
    .await;
}

/// ty knows the packages of an environment alone, and not those that the program finds.
#[tokio::test]
async fn packages_without_an_environment_are_said_to_be_missing_why() {
    let place = Place::new(&[("a.py", "import no_such_package\n")]);
    let wanted = json!({"file_path": "a.py", "timeout": 60});
    let answer = place.ok("lcp_get_diagnostics", wanted.clone()).await;
    let message = answer["data"][0]["message"].as_str().unwrap();
    assert!(message.contains("no_such_package") && !message.contains("info:"), "{answer}");
    let is_active = ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().any(|name| std::env::var_os(name).is_some());
    assert_eq!(answer["note"].to_string().contains("tool.ty.environment"), !is_active, "{answer}");
    std::fs::create_dir(place.root.join(".venv")).unwrap();
    let answer = place.ok("lcp_get_diagnostics", wanted).await;
    assert_eq!(answer["note"], json!(null), "{answer}");
}

#[tokio::test]
async fn a_line_with_several_uses_is_shown_once() {
    let place = Place::new(&[("a.py", "def f(): ...\n\nprint(f(), f(), f())\n")]);
    let wanted = json!({"symbol_name": "f", "context_file": "a.py", "timeout": 60});
    assert_eq!(place.ok("lcp_find_references", wanted.clone()).await["total"], 4);
    expect_test::expect![[r#"
        4 references to f in 1 files (ty)
        a.py
         1: def f(): ...
         3: print(f(), f(), f())"#]]
    .assert_eq(&place.text("lcp_find_references", wanted).await);
}
