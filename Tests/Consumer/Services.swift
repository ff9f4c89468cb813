// The application of Tests/Consumer/run with the traits ServiceLifecycle and Tracing: a service that stores records. It
// is started before the daemon, and prints each span as it ends.

import CRUDClient
import Glibc
import Logging
import ServiceLifecycle
import Synchronization
import Tracing

func show(_ text: String) {
    print(text)
    fflush(nil)
}

/// What a span belongs to, in the context of a task.
enum TraceKey: ServiceContextKey {
    typealias Value = String
}

final class RecordedSpan: Tracing.Span {
    private struct State {
        var name: String
        var attributes = SpanAttributes()
        var status: SpanStatus?
    }

    let context: ServiceContext
    private let state: Mutex<State>

    init(_ name: String, _ context: ServiceContext) {
        self.context = context
        state = Mutex(State(name: name))
    }

    var operationName: String {
        get { state.withLock { $0.name } }
        set { state.withLock { $0.name = newValue } }
    }
    var attributes: SpanAttributes {
        get { state.withLock { $0.attributes } }
        set { state.withLock { $0.attributes = newValue } }
    }
    var isRecording: Bool { true }

    func setStatus(_ status: SpanStatus) { state.withLock { $0.status = status } }
    func addEvent(_ event: SpanEvent) {}
    func recordError<Instant: TracerInstant>(
        _ error: any Error, attributes: SpanAttributes, at instant: @autoclosure () -> Instant
    ) {}
    func addLink(_ link: SpanLink) {}

    func end<Instant: TracerInstant>(at instant: @autoclosure () -> Instant) {
        var words: [String] = []
        func add(_ name: String, _ value: SpanAttribute) {
            if name != "server.address", case .string(let text) = value { words.append("\(name)=\(text)") }
            if case .int64(let number) = value { words.append("\(name)=\(number)") }
        }
        attributes.forEach(add)
        let isError = state.withLock { $0.status?.code == .error }
        show("span: \(([operationName] + words.sorted()).joined(separator: " "))\(isError ? " failed" : "")")
    }
}

/// Speaks W3C Trace Context.
struct Recorder: Tracer {
    static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"

    func startSpan<Instant: TracerInstant>(
        _ operationName: String, context: @autoclosure () -> ServiceContext, ofKind kind: SpanKind,
        at instant: @autoclosure () -> Instant, function: String, file fileID: String, line: UInt
    ) -> RecordedSpan {
        if kind != .client { show("kind: \(kind)") }
        return RecordedSpan(operationName, context())
    }

    func forceFlush() {}

    func extract<Carrier, Extract: Extractor>(
        _ carrier: Carrier, into context: inout ServiceContext, using extractor: Extract
    ) where Extract.Carrier == Carrier {}

    func inject<Carrier, Inject: Injector>(
        _ context: ServiceContext, into carrier: inout Carrier, using injector: Inject
    ) where Inject.Carrier == Carrier {
        guard let trace = context[TraceKey.self] else { return }
        injector.inject("vendor=1", forKey: "tracestate", into: &carrier)
        injector.inject("00-\(trace)-00f067aa0ba902b7-01", forKey: "traceparent", into: &carrier)
    }
}

struct User: Codable, Identifiable {
    var id: Int
    var name: String
}

struct Registration: Service {
    let client: CRUDClient

    func run() async throws {
        let users = client.repository("users", of: User.self)
        show("begun")
        // Here there is no daemon yet.
        try await users.create(User(id: 1, name: "secret"))
        show("created")
        var context = ServiceContext.topLevel
        context[TraceKey.self] = Recorder.trace
        await ServiceContext.withValue(context) {
            do { _ = try await users.read(id: 4711) } catch { show("error: \((error as? CRUDError)?.code.name ?? "")") }
        }
        _ = try await client.repository("users").batch([
            RecordOperation(.delete(), id: "a"), RecordOperation(.delete(), id: "b"),
        ])
        _ = try await client.repository("users").batch([
            RecordOperation(.delete(), id: "a"), RecordOperation(.delete(), id: "b", in: "others"),
        ])
        _ = try await client.call("daemon.ping")
        show("ready")
        try await gracefulShutdown()
        // The client is open until the services behind it have ended.
        show("records: \(try await users.count())")
    }
}

InstrumentationSystem.bootstrap(Recorder())
let client = CRUDClient()
let group = ServiceGroup(
    services: [client, Registration(client: client)], gracefulShutdownSignals: [.sigterm],
    logger: Logger(label: "app") { _ in SwiftLogNoOpLogHandler() })
try await group.run()
do { try await client.ping() } catch { show("end: \((error as? CRUDError)?.code.name ?? "")") }
