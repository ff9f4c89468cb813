package import CRUDModel
import CRUDPluginABI
import CRUDPluginHost
import CRUDThreads
import Synchronization

/// Makes known what a storage has and the catalog does not: collections that were there before the daemon, or that
/// somebody else has made. From then on they are listed, and protected from being orphaned, as any other.
///
/// The plugin lists its collections by one call. What the catalog knows is not looked at; the rest is probed, which is
/// not an opening, in steps between the writes of clients, and recorded many at a time. A storage that is not available
/// is asked once it is.
final class StorageSurvey: BackgroundWork {
    private let storage: OpenStorage
    private let requests: SurveyRequests
    private let adoption: Adoption
    private var pending: [[UInt8]] = []
    private var found: [(name: [UInt8], format: CollectionRule.Format)] = []
    /// Everything that the storage has, where all of it is being surveyed.
    private var listed: [[UInt8]]?
    private var nextStep = MonotonicTime.now

    private static let stepDuration = Duration.milliseconds(2)
    private static let retryPause = Duration.seconds(1)
    /// How many are recorded at a time.
    private static let maximumFound = 256

    init(_ storage: OpenStorage, _ requests: SurveyRequests, _ adoption: Adoption) {
        self.storage = storage
        self.requests = requests
        self.adoption = adoption
        requests.resume()
    }

    var timeUntilDue: Duration? {
        guard requests.isWaiting || !pending.isEmpty || !found.isEmpty || listed != nil else { return nil }
        return max(.zero, nextStep - MonotonicTime.now)
    }

    func advanceIfDue() {
        guard timeUntilDue == .zero else { return }
        let begin = MonotonicTime.now
        do throws(CRUDError) {
            try list()
            while found.count < Self.maximumFound, MonotonicTime.now - begin < Self.stepDuration,
                let name = pending.last
            {
                if let format = adoption.format(name), try has(name, format) { found.append((name, format)) }
                pending.removeLast()
            }
            if pending.isEmpty || found.count >= Self.maximumFound {
                if !found.isEmpty, let error = adoption.adopt(found) { throw error }
                found = []
                if pending.isEmpty { try end() }
            }
            nextStep = MonotonicTime.now + (MonotonicTime.now - begin)
        } catch {
            // It has been logged, if it is a failure of the plugin. The others must not wait for this one.
            if let last = pending.popLast() { pending.insert(last, at: 0) }
            nextStep = MonotonicTime.now + Self.retryPause
        }
    }

    /// A collection that cannot be opened is there all the same: the others must not wait for it for ever.
    private func has(_ name: [UInt8], _ format: CollectionRule.Format) throws(CRUDError) -> Bool {
        do throws(CRUDError) {
            return try storage.probe(name, format) != nil
        } catch {
            guard [.corrupt, .internalError, .unsupported].contains(error.code) else { throw error }
            return true
        }
    }

    private func end() throws(CRUDError) {
        if let names = listed, let error = adoption.isComplete(names) { throw error }
        listed = nil
        requests.end()
    }

    private func list() throws(CRUDError) {
        switch requests.take() {
        case .none: break
        case .names(let names): pending += names.filter { adoption.format($0) != nil }
        case .all:
            do throws(CRUDError) {
                let names = try storage.collectionNames()
                listed = names
                pending = names.filter { adoption.format($0) != nil }
            } catch {
                requests.ask(.all)
                throw error
            }
        }
    }
}

/// How collections that have been found become known; callable on any thread.
package struct Adoption: Sendable {
    /// In which format a collection is wanted in the backend that the catalog does not know; nil: it knows it, or the
    /// collection is not wanted there.
    let format: @Sendable (_ name: [UInt8]) -> CollectionRule.Format?
    /// Records that these are there.
    ///
    /// Returns why that is not possible now.
    let adopt: @Sendable ([(name: [UInt8], format: CollectionRule.Format)]) -> CRUDError?
    /// Records that of the collections in the storage, which these are, all that are wanted there are known.
    ///
    /// Returns why that is not possible now.
    let isComplete: @Sendable (_ names: [[UInt8]]) -> CRUDError?

    package init(
        format: @escaping @Sendable (_ name: [UInt8]) -> CollectionRule.Format?,
        adopt: @escaping @Sendable ([(name: [UInt8], format: CollectionRule.Format)]) -> CRUDError?,
        isComplete: @escaping @Sendable (_ names: [[UInt8]]) -> CRUDError?
    ) {
        self.format = format
        self.adopt = adopt
        self.isComplete = isComplete
    }
}

/// What a backend's writer is asked to look for in the storage.
final class SurveyRequests: Sendable {
    enum Request {
        case none, all
        case names(Set<[UInt8]>)
    }

    private struct State {
        var request = Request.none
        /// Whether a request is being executed.
        var isBusy = false
        /// To be resolved once nothing is asked for any more.
        var waiting: [OneShot<Bool>] = []
    }

    private let state = Mutex(State())

    var isWaiting: Bool { state.withLock { if case .none = $0.request { false } else { true } } }

    func ask(_ request: Request) {
        state.withLock { state in
            state.isBusy = true
            switch (state.request, request) {
            case (.all, _), (_, .none): break
            case (.names(let former), .names(let names)): state.request = .names(former.union(names))
            case (_, .all), (.none, .names): state.request = request
            }
        }
    }

    func take() -> Request {
        state.withLock { state in
            defer { state.request = .none }
            return state.request
        }
    }

    /// The storage has been opened again: what has been begun begins again.
    func resume() {
        state.withLock { state in
            if state.isBusy { state.request = .all }
        }
    }

    /// Everything that was asked for has been found.
    func end() {
        let waiting = state.withLock { state -> [OneShot<Bool>] in
            guard case .none = state.request else { return [] }
            defer { state.waiting = [] }
            state.isBusy = false
            return state.waiting
        }
        for isDone in waiting { isDone.resolve(true) }
    }

    /// Waits until nothing is asked for any more, or the time is over.
    func wait(atMost timeout: Duration) {
        let isDone = OneShot<Bool>()
        let isBusy = state.withLock { state in
            if state.isBusy { state.waiting.append(isDone) }
            return state.isBusy
        }
        guard isBusy else { return }
        _ = isDone.wait(atMost: timeout)
        state.withLock { state in state.waiting.removeAll { $0 === isDone } }
    }
}

extension OpenStorage {
    /// The names of all collections that are there, as far as they are names.
    func collectionNames() throws(CRUDError) -> [[UInt8]] {
        let names = CollectionNameList()
        // Alive until the call returns.
        let list = Unmanaged.passUnretained(names).toOpaque()
        let status = table.pointee.list_collections(
            opened.storage, context.begin(),
            { context, name in
                // `context` is the list above.
                guard let context else { return }
                Unmanaged<CollectionNameList>.fromOpaque(context).takeUnretainedValue().append(name)
            }, list, failure.pointer)
        if Int(status) != CRUDD_OK { throw failures.report(failure.take(status: status), during: "list_collections") }
        return names.names
    }
}

/// Gathers what a plugin lists.
private final class CollectionNameList {
    private(set) var names: [[UInt8]] = []

    func append(_ name: crudd_bytes) {
        let bytes = Array(name.buffer)
        guard String(validating: bytes, as: UTF8.self) != nil,
            Naming.violation(bytes.span, maximum: Naming.maximumCollectionNameBytes) == nil
        else { return }
        names.append(bytes)
    }
}
