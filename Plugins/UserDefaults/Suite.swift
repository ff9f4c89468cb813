import CRUDPluginKit
import Foundation

/// A suite of UserDefaults, kept from being lost.
///
/// Foundation changes the suite's file in place: it truncates it, writes the whole list and syncs it. A crash in
/// between leaves a torn list, and a torn list is not one to Foundation, so that its next change would lose all that
/// was there. Hence:
/// - Before each `synchronize()` there is a synced copy of the list. A torn list is replaced by its copy when the suite
///   is opened, and when `synchronize()` or the sync behind it fails. The next copy's room is allocated before a change
///   counts: on a full disk a list that becomes shorter can be written.
/// - The list is read by us, and `synchronize()` is called only while it is one. Content that others have changed is
///   noticed by the file's status.
/// - What `synchronize()` leaves is synced once more, with its mode and its name, through a descriptor that was open
///   before: it learns of an error that Foundation ignores.
final class Suite {
    private let defaults: UserDefaults
    private let file: SuiteFile
    private let host: CRUDPluginKit.Host
    private var content = SuiteContent()
    /// The file when `content` was what it holds.
    private var known: SuiteFile.Status?
    /// What tells the suite from others; 0 where that could not be stored yet.
    private(set) var identity: UInt64 = 0
    /// Whether the file may be torn, since it could not be replaced by its copy.
    private var isTorn = false

    init(named name: String, host: CRUDPluginKit.Host, call: CallContext) throws(StorageFailure) {
        guard let defaults = UserDefaults(suiteName: name) else {
            throw StorageFailure(.invalidOptions, "Foundation has no suite \(name)", pointer: "/suite")
        }
        self.defaults = defaults
        self.host = host
        file = try SuiteFile(suite: name)
        host.log(.info, "suite \(name) lies in \(file.path)")
        if host.expectsStorage {
            let hasList = try file.bytes() != nil
            // A list that has ever been changed has a copy.
            let hasCopy = try file.copy() != nil
            let identity = try file.storedIdentity() ?? (hasList ? 0 : nil)
            try host.requireStorage(hasCopy && !hasList ? nil : identity, in: file.path)
        }
        if let bytes = try file.bytes(), Self.list(bytes) == nil, let copy = try file.copy(), Self.list(copy) != nil {
            try file.restore(copy)
            host.log(.warning, "\(file.path) was torn and has been replaced by the copy from before its last change")
        }
        try load(call)
        do {
            identity = try file.identity() ?? 0
        } catch {
            host.log(.warning, "cannot store what tells suite \(name) from others: \(error.message)")
        }
    }

    // MARK: Reading

    /// The suite as it is now.
    func current(_ call: CallContext) throws(StorageFailure) -> SuiteContent {
        if isTorn {
            // What is in memory is what the copy holds.
            do { try restore() } catch { return content }
        }
        if try file.status() != known { try load(call) }
        return content
    }

    /// See ``SuiteContent/sequenceCeiling``.
    var sequenceCeiling: UInt64 { content.sequenceCeiling }

    /// Every key of a collection, among them those without a record.
    func keys(of collection: [UInt8]) throws(StorageFailure) -> [String] {
        try list().keys.filter { SuiteKey($0)?.collection == collection }
    }

    private func load(_ call: CallContext) throws(StorageFailure) {
        let status = try file.status()
        content = try SuiteContent(try list(), call)
        // Without changes of ours this makes Foundation forget what it has read.
        if status != nil { try file.makeCopy() }
        guard defaults.synchronize() else {
            throw StorageFailure(.unavailable, "Foundation cannot read \(file.path)")
        }
        known = status
    }

    private func list() throws(StorageFailure) -> [String: Any] {
        guard let bytes = try file.bytes() else { return [:] }
        guard let list = Self.list(bytes) else {
            throw StorageFailure(.unavailable, "\(file.path) is not a property list with keys and values")
        }
        return list
    }

    private static func list(_ bytes: [UInt8]) -> [String: Any]? {
        var format = PropertyListSerialization.PropertyListFormat.openStep
        let list = try? PropertyListSerialization.propertyList(from: Data(bytes), format: &format)
        // Almost any text is a list in the oldest format.
        return format == .openStep ? nil : list as? [String: Any]
    }

    // MARK: Writing

    /// Makes the changes of a draft, all of them or none. It was made from what ``current()`` has just returned.
    func store(_ draft: SuiteDraft) throws(StorageFailure) {
        guard !draft.changes.isEmpty else { return }
        if isTorn { try restore() }
        try file.checkSyncs()
        if known == nil { try file.create() }
        try file.makeCopy()
        let opened = try file.open()
        let before = draft.changes.keys.map { ($0, defaults.object(forKey: $0)) }
        for (key, value) in draft.changes { defaults.set(value, forKey: key) }
        do throws(StorageFailure) {
            guard defaults.synchronize() else {
                // Foundation does not say why.
                throw StorageFailure(
                    file.isDiskFull ? .noSpace : .unavailable, "Foundation cannot write \(file.path)")
            }
            try file.sync(opened)
            try file.reserveCopy()
        } catch {
            for (key, value) in before { defaults.set(value, forKey: key) }
            try undo()
            throw error
        }
        content = draft.content
        known = try file.status()
    }

    /// Has the copy take the place of a list that is not on the disk as a whole.
    private func undo() throws(StorageFailure) {
        isTorn = true
        do {
            try restore()
        } catch {
            throw StorageFailure(.outcomeUnknown, error.message)
        }
    }

    private func restore() throws(StorageFailure) {
        guard let copy = try file.copy() else { throw StorageFailure(.unavailable, "the copy of \(file.path) is gone") }
        if try file.bytes() != copy { try file.restore(copy) }
        isTorn = false
        known = try file.status()
    }

    /// Brings the copy up to date, so that the next write need not.
    func makeCopy() {
        guard !isTorn, let known else { return }
        do {
            if try file.status() == known { try file.makeCopy() }
        } catch {
            host.log(.warning, error.message)
        }
    }
}
