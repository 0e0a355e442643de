//! The handshake, from the greeting to an export: fixed newstyle. Unknown and oversized options are
//! answered and skipped; they never end the session.

use super::{LONGEST_OPTION, Phase, Session, Step, skip};
use crate::export::{Export, LONGEST_DATA};
use crate::wire::{
    FIXED_NEWSTYLE, NO_ZEROES, OPTION, OPTION_BYTES, OPTION_REPLY, answer, info, option, u16_at,
    u32_at, u64_at,
};

impl Session {
    pub(super) fn flags<'a>(&mut self, input: &mut &'a [u8]) -> Option<Step<'a>> {
        self.with_bytes(4, input, |session, bytes| {
            let flags = u32_at(bytes, 0);
            if flags & !u32::from(FIXED_NEWSTYLE | NO_ZEROES) != 0 {
                return session.close();
            }
            session.no_zeroes = flags & u32::from(NO_ZEROES) != 0;
            session.phase = Phase::Option;
            None
        })
    }

    pub(super) fn option<'a>(&mut self, input: &mut &'a [u8]) -> Option<Step<'a>> {
        self.with_bytes(OPTION_BYTES, input, |session, head| {
            if u64_at(head, 0) != OPTION {
                return session.close();
            }
            let (option, length) = (u32_at(head, 8), u32_at(head, 12));
            session.phase = if length > LONGEST_OPTION {
                Phase::PassOption { option, left: length }
            } else {
                Phase::OptionData { option, length }
            };
            None
        })
    }

    pub(super) fn pass_option<'a>(
        &mut self,
        option: u32,
        left: u32,
        input: &mut &'a [u8],
        out: &mut Vec<u8>,
    ) -> Option<Step<'a>> {
        // `EXPORT_NAME` has no error reply.
        if option == option::EXPORT_NAME {
            return self.close();
        }
        let left = skip(left, input);
        if left > 0 {
            self.phase = Phase::PassOption { option, left };
            return Some(Step::NeedInput);
        }
        put_answer(out, option, answer::ERR_TOO_BIG, &[]);
        self.phase = Phase::Option;
        None
    }

    pub(super) fn option_data<'a>(
        &mut self,
        option: u32,
        length: u32,
        input: &mut &'a [u8],
        exports: &[Export],
        out: &mut Vec<u8>,
    ) -> Option<Step<'a>> {
        self.with_bytes(length as usize, input, |session, data| {
            session.phase = Phase::Option;
            match option {
                option::EXPORT_NAME => return session.by_name(data, exports, out),
                option::ABORT => {
                    put_answer(out, option, answer::ACK, &[]);
                    return session.close();
                }
                option::LIST => list(data, exports, out),
                option::INFO | option::GO => session.inform(option, data, exports, out),
                option::STRUCTURED_REPLY if data.is_empty() => {
                    session.structured = true;
                    put_answer(out, option, answer::ACK, &[]);
                }
                option::STRUCTURED_REPLY => put_answer(out, option, answer::ERR_INVALID, &[]),
                _ => put_answer(out, option, answer::ERR_UNSUP, &[]),
            }
            None
        })
    }

    fn by_name<'a>(
        &mut self,
        name: &[u8],
        exports: &[Export],
        out: &mut Vec<u8>,
    ) -> Option<Step<'a>> {
        let Some((place, export)) = find_export(name, exports) else { return self.close() };
        out.extend_from_slice(&export.size.0.to_be_bytes());
        out.extend_from_slice(&export.flags().to_be_bytes());
        if !self.no_zeroes {
            out.extend_from_slice(&[0; 124]);
        }
        (self.export, self.phase) = (place, Phase::Requests);
        None
    }

    /// Answer `INFO` and `GO`; a `GO` for a known export begins the transmission.
    fn inform(&mut self, option: u32, data: &[u8], exports: &[Export], out: &mut Vec<u8>) {
        let Some((name, wanted)) = parse_info_request(data) else {
            return put_answer(out, option, answer::ERR_INVALID, &[]);
        };
        let Some((place, export)) = find_export(name, exports) else {
            return put_answer(out, option, answer::ERR_UNKNOWN, &[]);
        };
        let mut reply = info::EXPORT.to_be_bytes().to_vec();
        reply.extend_from_slice(&export.size.0.to_be_bytes());
        reply.extend_from_slice(&export.flags().to_be_bytes());
        put_answer(out, option, answer::INFO, &reply);
        for kind in [info::NAME, info::DESCRIPTION, info::BLOCK_SIZE] {
            if !wanted.chunks_exact(2).any(|asked| u16_at(asked, 0) == kind) {
                continue;
            }
            let mut reply = kind.to_be_bytes().to_vec();
            match kind {
                info::NAME => reply.extend_from_slice(export.name.as_bytes()),
                info::DESCRIPTION => reply.extend_from_slice(export.description.as_bytes()),
                _ => {
                    let sizes = [export.sector, export.preferred, LONGEST_DATA];
                    sizes.iter().for_each(|size| reply.extend_from_slice(&size.to_be_bytes()));
                }
            }
            put_answer(out, option, answer::INFO, &reply);
        }
        put_answer(out, option, answer::ACK, &[]);
        if option == option::GO {
            (self.export, self.phase) = (place, Phase::Requests);
        }
    }
}

/// Parse an `INFO` or `GO` request into the name and the requested kinds of information; `None` if
/// they do not fill `data` exactly.
fn parse_info_request(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = data.split_at_checked(4)?;
    let (name, rest) = rest.split_at_checked(u32_at(length, 0) as usize)?;
    let (count, wanted) = rest.split_at_checked(2)?;
    (wanted.len() == usize::from(u16_at(count, 0)) * 2).then_some((name, wanted))
}

fn find_export<'a>(name: &[u8], exports: &'a [Export]) -> Option<(usize, &'a Export)> {
    let place = exports.iter().position(|export| export.name.as_bytes() == name);
    let place = place.or((name.is_empty() && !exports.is_empty()).then_some(0))?;
    Some((place, &exports[place]))
}

fn list(data: &[u8], exports: &[Export], out: &mut Vec<u8>) {
    if !data.is_empty() {
        return put_answer(out, option::LIST, answer::ERR_INVALID, &[]);
    }
    for export in exports {
        let mut reply = (export.name.len() as u32).to_be_bytes().to_vec();
        reply.extend_from_slice(export.name.as_bytes());
        reply.extend_from_slice(export.description.as_bytes());
        put_answer(out, option::LIST, answer::SERVER, &reply);
    }
    put_answer(out, option::LIST, answer::ACK, &[]);
}

fn put_answer(out: &mut Vec<u8>, option: u32, kind: u32, data: &[u8]) {
    out.extend_from_slice(&OPTION_REPLY.to_be_bytes());
    out.extend_from_slice(&option.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&(data.len() as u32).to_be_bytes());
    out.extend_from_slice(data);
}
