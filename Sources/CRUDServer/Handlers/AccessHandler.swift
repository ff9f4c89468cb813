import CRUDConfiguration
import CRUDEventLoop
import CRUDJSON
import CRUDModel
import CRUDWire
import Glibc

/// The methods that tell who may do what: `session.whoami` and `access.check`.
final class AccessHandler {
    private let loop: LoopState
    private let delegated: DelegatedCalls
    private let inspector: Inspector

    init(_ loop: LoopState, _ delegated: DelegatedCalls, _ inspector: Inspector) {
        self.loop = loop
        self.delegated = delegated
        self.inspector = inspector
    }

    func whoami(_ call: borrowing Call) {
        let session = call.session
        let peer = session.peer
        let allowances = loop.service.configuration.access.allowances(uid: peer.uid, groups: peer.groups)
        call.reply { output in
            output.appendObject { result in
                result.member("session", session.number)
                result.member("uid", peer.uid)
                result.key("groups")
                result.array { groups in for group in Set(peer.groups).sorted() { groups.integer(Int(group)) } }
                result.member("access", objects: allowances) { allowance, rule in
                    if let collections = allowance.collections {
                        rule.member("collections", strings: collections.map(\.text))
                    }
                    rule.member("allow", strings: allowance.allow.words)
                }
            }
        }
    }

    func check(_ call: borrowing Call) throws(CRUDError) {
        let question = try AccessQuestion(call)
        guard let user = call[.user] else {
            let answer = question.answer(loop.service.configuration.access, call.session.peer)
            return call.reply { $0.append(answer.span) }
        }
        guard call.session.authority.isAdmin else { throw .denied(.admin) }
        let completion = delegated.begin(
            call, overdue: CRUDError(.unavailable, "the system takes long to look a user up"))
        let name = String(decoding: call.decode(user), as: UTF8.self)
        inspector.append(Inspection(.access(question, user: name), loop.service, completion))
    }
}

/// Whether somebody may call a method.
struct AccessQuestion: Sendable {
    private let required: Permissions
    /// Nil where the method has none.
    private let collection: [UInt8]?

    /// - Throws: `invalid_params`.
    init(_ call: borrowing Call) throws(CRUDError) {
        guard let parameter = call[.method],
            let method = Method(named: String(decoding: call.decode(parameter), as: UTF8.self))
        else { throw Parameter.method.invalid("is no method of the protocol") }
        guard method != .recordBatch else {
            throw Parameter.method.invalid("needs what its operations need: ask for those, such as record.create")
        }
        let hasCollection = method.definition.required.contains(.collection)
        guard hasCollection == (call[.collection] != nil) else {
            let name = method.name.description
            throw Parameter.collection.invalid(
                hasCollection ? "is missing, which \(name) has" : "goes not with \(name), which has none")
        }
        required = method.definition.access.permissions
        collection = if let name = call[.collection] { call.decode(name) } else { nil }
    }

    func answer(_ policy: AccessPolicy, _ peer: Peer) -> [UInt8] {
        let permissions =
            if let collection {
                policy.permissions(uid: peer.uid, groups: peer.groups, collection: collection.span)
            } else {
                policy.permissions(uid: peer.uid, groups: peer.groups)
            }
        var writer = JSONWriter()
        writer.object { result in
            result.member("allowed", permissions.isSuperset(of: required))
            result.member("uid", peer.uid)
            result.member("requires", strings: required.words)
            result.member("has", strings: permissions.words)
        }
        return writer.bytes
    }
}

extension Peer {
    /// A user of this machine, with the groups that the system's databases say.
    ///
    /// - Parameter user: a name or a number.
    /// - Throws: `invalid_params` where there is none.
    init(named user: String) throws(CRUDError) {
        if !user.isEmpty, user.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }) {
            // The highest number means "none" to the kernel (chown(2), setresuid(2)).
            guard let uid = UInt32(user), uid < .max else {
                throw Parameter.user.invalid("is not the number of a user")
            }
            self.init(uid: uid, groups: Accounts.groups(of: uid))
            return
        }
        switch Accounts.user(user) {
        case .id(let uid): self.init(uid: uid, groups: Accounts.groups(of: uid))
        case .absent: throw Parameter.user.invalid("is no user of this machine")
        case .failure: throw CRUDError(.unavailable, "the system cannot look a user up now")
        }
    }
}

extension Method {
    /// The method with a name; nil if there is none.
    fileprivate init?(named name: String) {
        guard let method = Method.allCases.first(where: { $0.name.description.utf8.elementsEqual(name.utf8) }) else {
            return nil
        }
        self = method
    }
}
