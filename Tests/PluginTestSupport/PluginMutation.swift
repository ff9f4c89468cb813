import CRUDPluginABI

/// One change of one record.
package struct PluginMutation {
    private let collection: PluginCollection
    private let kind: Int
    private let id: String
    private let item: String
    private let revision: String
    private let precondition: Precondition

    package enum Precondition: Sendable {
        case none, absent, present
        case revision(String)
    }

    package static func put(
        _ id: String, _ item: String, revision: String = "1", if precondition: Precondition = .none,
        in collection: PluginCollection
    ) -> PluginMutation {
        PluginMutation(
            collection: collection, kind: CRUDD_PUT, id: id, item: item, revision: revision, precondition: precondition)
    }

    package static func remove(
        _ id: String, if precondition: Precondition = .none, in collection: PluginCollection
    ) -> PluginMutation {
        PluginMutation(
            collection: collection, kind: CRUDD_REMOVE, id: id, item: "", revision: "", precondition: precondition)
    }

    package static func check(
        _ id: String, if precondition: Precondition, in collection: PluginCollection
    ) -> PluginMutation {
        PluginMutation(
            collection: collection, kind: CRUDD_CHECK, id: id, item: "", revision: "", precondition: precondition)
    }

    /// Memory for the texts, freed with the object.
    var fields: Fields {
        var expected = ""
        if case .revision(let revision) = precondition { expected = revision }
        return Fields([id, item, revision, expected])
    }

    func raw(_ fields: Fields) -> crudd_mutation {
        var raw = crudd_mutation()
        raw.collection = collection.handle
        raw.kind = UInt32(kind)
        raw.precondition =
            switch precondition {
            case .none: UInt32(CRUDD_IF_ANY)
            case .absent: UInt32(CRUDD_IF_ABSENT)
            case .present: UInt32(CRUDD_IF_PRESENT)
            case .revision: UInt32(CRUDD_IF_REVISION)
            }
        raw.id = fields.bytes[0]
        raw.item = fields.bytes[1]
        raw.revision = fields.bytes[2]
        raw.expected = fields.bytes[3]
        return raw
    }

    /// Copies of texts at addresses that hold as long as the object.
    final class Fields {
        let bytes: [crudd_bytes]

        init(_ texts: [String]) {
            bytes = texts.map { text in
                let copy = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: text.utf8.count)
                _ = copy.initialize(fromContentsOf: Array(text.utf8))
                return crudd_bytes(data: copy.baseAddress, size: copy.count)
            }
        }

        deinit {
            for bytes in bytes { UnsafeMutablePointer(mutating: bytes.data)?.deallocate() }
        }
    }
}

/// What one mutation came to.
package enum PluginOutcome: Equatable, Sendable {
    case applied(replaced: Bool)
    case mismatch(current: String)
    case refused(Int)

    package static let created = PluginOutcome.applied(replaced: false)
    package static let replaced = PluginOutcome.applied(replaced: true)
    package static let removed = PluginOutcome.applied(replaced: false)
    package static let exists = PluginOutcome.refused(CRUDD_EXISTS)
    package static let notFound = PluginOutcome.refused(CRUDD_NOT_FOUND)
    package static let noSpace = PluginOutcome.refused(CRUDD_NO_SPACE)

    init(_ outcome: crudd_outcome) {
        switch Int(outcome.status) {
        case CRUDD_OK: self = .applied(replaced: outcome.replaced != 0)
        case CRUDD_MISMATCH:
            self = .mismatch(
                current: withUnsafeBytes(of: outcome.revision) {
                    String(decoding: $0.prefix(Int(outcome.revision_size)), as: UTF8.self)
                })
        case let status: self = .refused(status)
        }
    }
}
