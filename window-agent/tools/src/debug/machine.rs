//! Actions below the source: instructions, memory, modules, sources.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::arguments::given;
use super::wire::{Memory, Modules, Written};
use super::{Call, Reply, details, text};
use baton_agent_base::fault::{Fault, Kind};
use baton_agent_base::object::{Object, object};
use baton_agent_base::wire::read;
use baton_agent_debug::types::control::gates;

/// Modules, and sources, when the client does not say.
const DEFAULT_COUNT: usize = 50;
/// Bytes in a line of a dump, and lines of it.
const DUMP: (usize, usize) = (16, 64);

impl Call<'_> {
    pub(super) async fn disassemble(&self) -> Result<Reply, Fault> {
        let arguments = &self.arguments;
        let reference = match given(&arguments.memory_reference) {
            Some(reference) => reference,
            None => self.instruction_pointer().await?,
        };
        let mut asked = object(json!({
            "memoryReference": reference,
            "instructionCount": arguments.instruction_count,
            "resolveSymbols": arguments.resolve_symbols.unwrap_or(true),
        }));
        details::insert(&mut asked, "offset", arguments.offset);
        details::insert(&mut asked, "instructionOffset", arguments.instruction_offset);
        let body = self.request("disassemble", asked, Some(gates::DISASSEMBLE)).await?;
        let instructions = list_in(&body, "instructions");
        let lines: Vec<String> = instructions.iter().map(text::instruction).collect();
        let told = text::list("Disassembly", &lines, "There are no instructions.");
        self.finish(Reply::new(told, json!({"disassembly": instructions}))).await
    }

    /// Where the program stopped, for an adapter that tells it.
    async fn instruction_pointer(&self) -> Result<String, Fault> {
        let status = self.status().await?;
        // What the adapter cannot do at all comes before what the stop lacks.
        if status.capabilities.get(gates::DISASSEMBLE.capability) != Some(&Value::Bool(true)) {
            return Err(super::fault::unsupported(gates::DISASSEMBLE.what));
        }
        let top = status.last_stop.as_deref().and_then(|stop| stop.call_stack.first());
        top.and_then(|top| top.instruction_pointer.clone()).ok_or_else(|| {
            Fault::new(
                Kind::InvalidArguments,
                "disassemble requires memory_reference unless the current stop location has an instruction \
                 pointer reference",
            )
        })
    }

    pub(super) async fn read_memory(&self) -> Result<Reply, Fault> {
        let arguments = &self.arguments;
        let reference = given(&arguments.memory_reference).unwrap_or_default();
        let count = arguments.count.unwrap_or_default();
        let mut asked = object(json!({"memoryReference": reference, "count": count}));
        details::insert(&mut asked, "offset", arguments.offset);
        let body = self.request("readMemory", asked, Some(gates::READ_MEMORY)).await?;
        let Memory { address, data, unreadable_bytes } = read(&body);
        let address = address.unwrap_or(reference);
        let bytes = STANDARD.decode(&data).unwrap_or_default();
        let unreadable = unreadable_bytes.unwrap_or_else(|| count.saturating_sub(bytes.len()) as u64);
        if bytes.is_empty() && count > 0 {
            let problem = format!("{count} bytes at {address} cannot be read");
            return Err(Fault::new(Kind::AdapterRefused, problem));
        }
        let told = format!("{} bytes at {address}, {unreadable} unreadable\n{}", bytes.len(), dump(&bytes));
        let more = json!({"memoryAddress": address, "memoryData": data, "unreadableBytes": unreadable});
        self.finish(Reply::new(told.trim_end(), more)).await
    }

    pub(super) async fn write_memory(&self) -> Result<Reply, Fault> {
        let arguments = &self.arguments;
        let data = arguments.data.as_deref().unwrap_or_default();
        let Ok(bytes) = STANDARD.decode(data) else {
            return Err(Fault::new(Kind::InvalidArguments, "data must be Base64"));
        };
        let reference = given(&arguments.memory_reference).unwrap_or_default();
        let mut asked = object(json!({
            "memoryReference": reference,
            "data": data,
            "allowPartial": arguments.allow_partial.unwrap_or(false),
        }));
        details::insert(&mut asked, "offset", arguments.offset);
        let body = self.request("writeMemory", asked, Some(gates::WRITE_MEMORY)).await?;
        let written = match read::<Written>(&body).bytes_written {
            Some(written) => written,
            // It need not be told when all of it was written, and js-debug does not tell that nothing was.
            None if self.holds(&reference, &bytes).await => bytes.len() as u64,
            None => 0,
        };
        if written == 0 && !bytes.is_empty() {
            let problem = format!("{} bytes at {reference} cannot be written", bytes.len());
            return Err(Fault::new(Kind::AdapterRefused, problem));
        }
        let reply =
            Reply::new(format!("{written} bytes written at {reference}"), json!({"bytesWritten": written}));
        self.finish(reply).await
    }

    /// Whether the memory holds these bytes; what cannot be read is believed.
    async fn holds(&self, reference: &str, bytes: &[u8]) -> bool {
        let mut asked = object(json!({"memoryReference": reference, "count": bytes.len()}));
        details::insert(&mut asked, "offset", self.arguments.offset);
        let Ok(body) = self.request("readMemory", asked, Some(gates::READ_MEMORY)).await else { return true };
        STANDARD.decode(read::<Memory>(&body).data).is_ok_and(|held| held == bytes)
    }

    pub(super) async fn modules(&self) -> Result<Reply, Fault> {
        let arguments = &self.arguments;
        let start = arguments.start_module.and_then(|start| usize::try_from(start).ok()).unwrap_or(0);
        let count =
            arguments.module_count.and_then(|count| usize::try_from(count).ok()).filter(|count| *count > 0);
        let mut asked = Object::new();
        details::insert(&mut asked, "startModule", arguments.start_module);
        details::insert(&mut asked, "moduleCount", arguments.module_count);
        let body = self.request("modules", asked, Some(gates::MODULES)).await?;
        let all = list_in(&body, "modules");
        let told_total = read::<Modules>(&body).total_modules;
        // Some adapters do not page: they answer everything, from the first one on.
        let is_whole = told_total.is_none_or(|total| all.len() >= total) && start > 0 && all.len() > start;
        let rest = if is_whole { &all[start..] } else { &all[..] };
        let total = told_total.unwrap_or(if is_whole || start == 0 { all.len() } else { start + all.len() });
        let page: Vec<Value> = rest.iter().take(count.unwrap_or(DEFAULT_COUNT)).cloned().collect();
        let lines: Vec<String> = page.iter().map(text::module).collect();
        let mut told = text::list("Modules", &lines, "There are no modules.");
        let next = start + page.len();
        if total > next {
            told.push_str(&format!("\n{} more; start_module {next} gives them.", total - next));
        }
        self.finish(Reply::new(told, json!({"modules": page, "total": total}))).await
    }

    pub(super) async fn loaded_sources(&self) -> Result<Reply, Fault> {
        let body = self.request("loadedSources", Object::new(), Some(gates::LOADED_SOURCES)).await?;
        let all = list_in(&body, "sources");
        let start = self.arguments.start.unwrap_or(0).min(all.len());
        let count = self.arguments.count.filter(|count| *count > 0).unwrap_or(DEFAULT_COUNT);
        let page: Vec<Value> = all[start..].iter().take(count).cloned().collect();
        let lines: Vec<String> = page.iter().map(text::source).collect();
        let mut told = text::list("Loaded sources", &lines, "There are no loaded sources.");
        let next = start + page.len();
        if all.len() > next {
            told.push_str(&format!("\n{} more; start {next} gives them.", all.len() - next));
        }
        self.finish(Reply::new(told, json!({"sources": page, "total": all.len()}))).await
    }
}

fn list_in(body: &Value, name: &str) -> Vec<Value> {
    body[name].as_array().cloned().unwrap_or_default()
}

/// Bytes as hexadecimal digits and characters.
fn dump(bytes: &[u8]) -> String {
    let (width, max_lines) = DUMP;
    let line = |(idx, bytes): (usize, &[u8])| {
        let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let shown =
            |byte: &u8| if byte.is_ascii_graphic() || *byte == b' ' { char::from(*byte) } else { '.' };
        let chars: String = bytes.iter().map(shown).collect();
        format!("{:04x}  {:<47}  {chars}\n", idx * width, digits.join(" "))
    };
    let mut text: String = bytes.chunks(width).enumerate().take(max_lines).map(line).collect();
    if bytes.len() > width * max_lines {
        text.push_str("...\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_shown_in_lines() {
        assert_eq!(dump(b""), "");
        assert_eq!(
            dump(b"hello, world\0\x01\xff!more"),
            "0000  68 65 6c 6c 6f 2c 20 77 6f 72 6c 64 00 01 ff 21  hello, world...!\n\
             0010  6d 6f 72 65                                      more\n"
        );
        assert_eq!(dump(&[0; 2_000]).lines().count(), 65);
    }
}
