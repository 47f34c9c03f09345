// SPDX-License-Identifier: GPL-2.0
//! Writes the contract in C, in Rust, and as numbers for assembly.

use std::fmt::Write as _;

use crate::describe::{Const, Contract, Field, File, What, TYPES};

/// Most elements of an array that core derives Default for.
const DEFAULT_MAX: u64 = 32;

/// The types of the description, in the kernel and elsewhere.
const C_TYPES: &str = "
#ifdef __KERNEL__
#include <linux/types.h>
#define R3_TYPE(kernel, standard)\tkernel
#else
#include <stdint.h>
#define R3_TYPE(kernel, standard)\tstandard
#endif
typedef R3_TYPE(u8, uint8_t) r3_u8;
typedef R3_TYPE(u32, uint32_t) r3_u32;
typedef R3_TYPE(s32, int32_t) r3_s32;
typedef R3_TYPE(u64, uint64_t) r3_u64;
typedef R3_TYPE(s64, int64_t) r3_s64;
typedef r3_u32 r3_a32;
typedef r3_s32 r3_as32;
typedef r3_u64 r3_a64;

#include \"ring3_space.h\"
";

fn comment(out: &mut String, text: &[String]) {
    match text {
        [] => {}
        [line] => _ = writeln!(out, "/* {line} */"),
        lines => {
            out.push_str("/*\n");
            lines
                .iter()
                .for_each(|line| _ = writeln!(out, "{}", format!(" * {line}").trim_end()));
            out.push_str(" */\n");
        }
    }
}

fn note(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!("\t/* {text} */")
    }
}

/// Numbers get the suffix of their type.
fn c_value(ty: &str, value: &str) -> String {
    let suffix = match ty {
        "u32" => "u",
        "u64" => "ULL",
        "str" => return value.into(),
        _ => "",
    };
    let mut out = String::new();
    let mut rest = value;
    while let Some(at) = rest.find(|c: char| c.is_alphanumeric() || c == '_') {
        let end = rest[at..].find(|c: char| !(c.is_alphanumeric() || c == '_'));
        let end = end.map_or(rest.len(), |n| at + n);
        out.push_str(&rest[..end]);
        if rest[at..].starts_with(|c: char| c.is_ascii_digit()) {
            out.push_str(suffix);
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    if out.contains(' ') && !out.starts_with('(') {
        format!("({out})")
    } else {
        out
    }
}

fn define(out: &mut String, c: &Const) {
    let head = format!("#define {}", c.name);
    let tabs = "\t".repeat(((39 - head.len().min(38)) / 8).max(1));
    let _ = writeln!(
        out,
        "{head}{tabs}{}{}",
        c_value(&c.ty, &c.value),
        note(&c.note)
    );
}

fn c_field(field: &Field) -> String {
    let base = TYPES.iter().find(|(name, ..)| *name == field.ty);
    let ty = base.map_or_else(|| format!("struct {}", field.ty), |(_, c, ..)| (*c).into());
    let count = field
        .count
        .as_ref()
        .map_or_else(String::new, |(n, _)| format!("[{n}]"));
    let align = field
        .align
        .map_or_else(String::new, |n| format!(" __attribute__((aligned({n})))"));
    format!(
        "\t{ty} {}{count}{align};{}\n",
        field.name,
        note(&field.note)
    )
}

pub fn header(contract: &Contract, file: &File) -> String {
    let guard = file.name.to_uppercase().replace('.', "_");
    let mut out = String::from("/* SPDX-License-Identifier: GPL-2.0 */\n");
    let mut text = vec![format!("{} - {}", file.name, file.title)];
    text.extend(file.text.iter().cloned());
    comment(&mut out, &text);
    let _ = writeln!(out, "#ifndef {guard}\n#define {guard}");
    let whole = file.name == "ring3.h";
    if whole {
        out.push_str(C_TYPES);
        let _ = writeln!(out, "\n#define RING3_ABI\t\t{:#010x}u", contract.number);
        let _ = writeln!(
            out,
            "#define RING3_NR_MAX\t\t{:#x}",
            contract.values["RING3_NR_MAX"]
        );
    }
    for item in &file.items {
        if !matches!(item.what, What::Const(_)) || !item.text.is_empty() {
            out.push('\n');
        }
        comment(&mut out, &item.text);
        match &item.what {
            What::Const(c) => define(&mut out, c),
            What::Macro(name, argument, value) => {
                let value =
                    c_value("u32", value).replace(argument.as_str(), &format!("({argument})"));
                let _ = writeln!(out, "#define {name}({argument})\t{value}");
            }
            What::Enum(name, values) => {
                let _ = writeln!(out, "enum {name} {{");
                for c in values {
                    let _ = writeln!(out, "\t{} = {},{}", c.name, c.value, note(&c.note));
                }
                out.push_str("};\n");
            }
            What::Struct(name) => {
                let _ = writeln!(out, "struct {name} {{");
                for field in &contract.structs[name].fields {
                    out.push_str(&c_field(field));
                }
                out.push_str("};\n");
            }
        }
    }
    let _ = writeln!(out, "\n#endif /* {guard} */");
    out
}

/// Where each field lies, and each number without C's suffix.
pub fn assembly(contract: &Contract) -> String {
    let mut out = String::from(
        "/* SPDX-License-Identifier: GPL-2.0 */\n/* ring3_asm.h - the contract for assembly: tools/abi makes it of include/ring3.abi */\n\
         #ifndef RING3_ASM_H\n#define RING3_ASM_H\n\n",
    );
    for (name, whole) in &contract.structs {
        let name = name.trim_start_matches("ring3_").to_uppercase();
        let _ = writeln!(out, "#define SIZEOF_{name}\t{}", whole.size);
        for field in whole.fields.iter().filter(|field| field.name != "pad") {
            let _ = writeln!(
                out,
                "#define {name}_{}\t{}",
                field.name.to_uppercase(),
                field.offset
            );
        }
    }
    out.push_str("\n#ifdef __ASSEMBLER__\n");
    for (name, value) in &contract.values {
        let _ = writeln!(out, "#define {name}\t{value:#x}");
    }
    let _ = writeln!(
        out,
        "#define RING3_ABI\t{:#x}\n#endif\n\n#endif",
        contract.number
    );
    out
}

pub fn rust(contract: &Contract) -> String {
    let mut out = format!("pub const RING3_ABI: u32 = {:#010x};\n", contract.number);
    let mut layout = String::new();
    for item in contract.files.iter().flat_map(|file| &file.items) {
        match &item.what {
            What::Const(c) => constant(&mut out, contract, c),
            What::Enum(_, values) => values.iter().for_each(|c| constant(&mut out, contract, c)),
            What::Macro(name, argument, value) => {
                let name = name.to_lowercase();
                let _ = writeln!(
                    out,
                    "#[must_use]\npub const fn {name}({argument}: u32) -> u32 {{\n    {value}\n}}"
                );
            }
            What::Struct(name) => structure(&mut out, &mut layout, contract, name),
        }
    }
    let values = contract
        .values
        .iter()
        .map(|(name, value)| format!("    (\"{name}\", {value:#x}),\n"));
    let values: String = values.collect();
    format!(
        "{out}\n/// Every number of the contract.\npub const CONSTANTS: &[(&str, u64)] = &[\n{values}];\n\n\
         /// Every structure, as the description lays it out and as Rust does.\npub const LAYOUT: &[Struct] = &[\n{layout}];\n"
    )
}

fn constant(out: &mut String, contract: &Contract, c: &Const) {
    let _ = match c.ty.as_str() {
        "str" => writeln!(out, "pub const {}: &str = {};", c.name, c.value),
        ty => {
            let ty = if ty == "int" {
                "usize"
            } else if ty == "long" {
                "u64"
            } else {
                ty
            };
            writeln!(
                out,
                "pub const {}: {ty} = {:#x};",
                c.name, contract.values[&c.name]
            )
        }
    };
}

fn structure(out: &mut String, layout: &mut String, contract: &Contract, name: &str) {
    let whole = &contract.structs[name];
    let (mut fields, mut places, mut default) = (String::new(), String::new(), true);
    let mut end = 0;
    for field in &whole.fields {
        let (size, ..) = contract.layout(&field.ty, name);
        let base = TYPES.iter().find(|(name, ..)| *name == field.ty);
        let ty = base.map_or(field.ty.as_str(), |(_, _, rust, _)| rust);
        // What an alignment of the field's own leaves free, Rust does not leave free by itself.
        if field.align.is_some() && field.offset > end {
            let _ = writeln!(
                fields,
                "    pub _before_{}: [u8; {}],",
                field.name,
                field.offset - end
            );
            default &= field.offset - end <= DEFAULT_MAX;
        }
        // Names that Rust has for something else.
        let rust_name = match field.name.as_str() {
            name @ ("self" | "use") => format!("{name}_"),
            name => name.into(),
        };
        let count = field.count.as_ref().map_or(1, |(_, n)| *n);
        let ty = if field.count.is_some() {
            format!("[{ty}; {count}]")
        } else {
            ty.into()
        };
        let _ = writeln!(fields, "    pub {rust_name}: {ty},");
        let offset = field.offset;
        let _ = writeln!(
            places,
            "        (\"{}\", {offset}, core::mem::offset_of!({name}, {rust_name})),",
            field.name
        );
        default &= count <= DEFAULT_MAX
            && contract
                .structs
                .get(&field.ty)
                .is_none_or(|s| s.fields.len() <= 2);
        end = offset + size * count;
    }
    let derive = match (whole.atomic, default) {
        (true, _) => "",
        (false, true) => "#[derive(Clone, Copy, Debug, Default)]\n",
        (false, false) => "#[derive(Clone, Copy, Debug)]\n",
    };
    let _ = writeln!(
        out,
        "\n#[allow(non_camel_case_types, missing_docs)]\n{derive}#[repr(C, align({}))]\npub struct {name} {{\n{fields}}}",
        whole.align
    );
    let _ = writeln!(
        layout,
        "    Struct {{ name: \"{name}\", size: {}, rust_size: core::mem::size_of::<{name}>(), fields: &[\n{places}    ] }},",
        whole.size
    );
}
