//! The handshake, from the greeting to an export: fixed newstyle. Unknown and oversized options are
//! answered and skipped; they never end the session.

use super::{LONGEST_OPTION, Session, SessionEvent, SessionPhase, skip};
use crate::export::{Export, LONGEST_DATA};
use crate::wire::{
    FIXED_NEWSTYLE, NO_ZEROES, OPTION, OPTION_BYTES, OPTION_REPLY, answer, info, option, u16_at,
    u32_at, u64_at,
};

impl Session {
    pub(super) fn flags<'a>(&mut self, input: &mut &'a [u8]) -> Option<SessionEvent<'a>> {
        self.with_bytes(4, input, |session, bytes| {
            let flags = u32_at(bytes, 0);
            if flags & !u32::from(FIXED_NEWSTYLE | NO_ZEROES) != 0 {
                return session.close();
            }
            session.no_zeroes = flags & u32::from(NO_ZEROES) != 0;
            session.phase = SessionPhase::Option;
            None
        })
    }

    pub(super) fn option<'a>(&mut self, input: &mut &'a [u8]) -> Option<SessionEvent<'a>> {
        self.with_bytes(OPTION_BYTES, input, |session, head| {
            if u64_at(head, 0) != OPTION {
                return session.close();
            }
            let (option, length) = (u32_at(head, 8), u32_at(head, 12));
            session.phase = if length > LONGEST_OPTION {
                SessionPhase::SkipOption { option, left: length }
            } else {
                SessionPhase::OptionData { option, length }
            };
            None
        })
    }

    pub(super) fn skip_option<'a>(
        &mut self,
        option: u32,
        left: u32,
        input: &mut &'a [u8],
        out: &mut Vec<u8>,
    ) -> Option<SessionEvent<'a>> {
        // `EXPORT_NAME` has no error reply.
        if option == option::EXPORT_NAME {
            return self.close();
        }
        let left = skip(left, input);
        if left > 0 {
            self.phase = SessionPhase::SkipOption { option, left };
            return Some(SessionEvent::NeedInput);
        }
        put_answer(out, option, answer::ERR_TOO_BIG, &[]);
        self.phase = SessionPhase::Option;
        None
    }

    pub(super) fn option_data<'a>(
        &mut self,
        option: u32,
        length: u32,
        input: &mut &'a [u8],
        exports: &[Export],
        out: &mut Vec<u8>,
    ) -> Option<SessionEvent<'a>> {
        self.with_bytes(length as usize, input, |session, data| {
            session.phase = SessionPhase::Option;
            match option {
                option::EXPORT_NAME => return session.select_export(data, exports, out),
                option::ABORT => {
                    put_answer(out, option, answer::ACK, &[]);
                    return session.close();
                }
                option::LIST => list(data, exports, out),
                option::INFO | option::GO => session.answer_info(option, data, exports, out),
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

    fn select_export<'a>(
        &mut self,
        name: &[u8],
        exports: &[Export],
        out: &mut Vec<u8>,
    ) -> Option<SessionEvent<'a>> {
        let Some((index, export)) = find_export(name, exports) else { return self.close() };
        out.extend_from_slice(&export.size.0.to_be_bytes());
        out.extend_from_slice(&export.flags().to_be_bytes());
        if !self.no_zeroes {
            out.extend_from_slice(&[0; 124]);
        }
        (self.export, self.phase) = (index, SessionPhase::Requests);
        None
    }

    /// Answer `INFO` and `GO`; a `GO` for a known export begins the transmission.
    fn answer_info(&mut self, option: u32, data: &[u8], exports: &[Export], out: &mut Vec<u8>) {
        let Some((name, kinds)) = parse_info_request(data) else {
            return put_answer(out, option, answer::ERR_INVALID, &[]);
        };
        let Some((index, export)) = find_export(name, exports) else {
            return put_answer(out, option, answer::ERR_UNKNOWN, &[]);
        };
        let mut reply = info::EXPORT.to_be_bytes().to_vec();
        reply.extend_from_slice(&export.size.0.to_be_bytes());
        reply.extend_from_slice(&export.flags().to_be_bytes());
        put_answer(out, option, answer::INFO, &reply);
        for kind in [info::NAME, info::DESCRIPTION, info::BLOCK_SIZE] {
            if !kinds.chunks_exact(2).any(|requested| u16_at(requested, 0) == kind) {
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
            (self.export, self.phase) = (index, SessionPhase::Requests);
        }
    }
}

/// Parse an `INFO` or `GO` request into the name and the requested kinds of information; `None` if
/// they do not fill `data` exactly.
fn parse_info_request(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = data.split_at_checked(4)?;
    let (name, rest) = rest.split_at_checked(u32_at(length, 0) as usize)?;
    let (count, kinds) = rest.split_at_checked(2)?;
    (kinds.len() == usize::from(u16_at(count, 0)) * 2).then_some((name, kinds))
}

fn find_export<'a>(name: &[u8], exports: &'a [Export]) -> Option<(usize, &'a Export)> {
    let index = exports.iter().position(|export| export.name.as_bytes() == name);
    let index = index.or((name.is_empty() && !exports.is_empty()).then_some(0))?;
    Some((index, &exports[index]))
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
