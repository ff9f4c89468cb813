import CRUDConfiguration
import CRUDModel
import CRUDPlacement
import CRUDPluginHost
import CRUDStorage
import CRUDTestSupport
import CRUDThreads
import Logging

@testable import CRUDServer

/// What a daemon serves with, in the process of the tests: sessions, handlers and storage of records in memory, and one
/// event loop. It ends after the last reference to it is gone.
final class InProcessServer: Sendable {
    private let installation: Installation
    private let loop: Mailbox

    var socketPath: String { installation.socketPath }

    private static let backend = "main: {plugin: memory}"
    private static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    /// Loaded once: nothing unloads it.
    private static let plugin = Result {
        let installation = try Installation(Configuration(backends: backend))
        return try Plugin.load(PluginFile(named: "memory", in: [installation.pluginDirectory], sha256: nil))
    }

    /// - Parameter collections: the lines of `collections:`, which name the backend `main`.
    init(collections: String) throws {
        installation = try Installation(Configuration(backends: Self.backend, collections: collections))
        let service = try Self.service(
            .load(path: installation.configurationFile, environment: [:], mustBeTrusted: false))
        let listening = try Listening(service.configuration, ServiceManager())
        let (descriptors, started) = (listening.descriptors, OneShot<Result<Mailbox, any Error>>())
        _ = try Thread(named: "server") {
            do {
                let loop = try ServiceLoop(service, Inspector(), number: 0, heartbeatInterval: nil)
                try loop.listen(
                    at: descriptors, Acceptor([loop.mailbox], service.sessions, logger: service.logger))
                started.resolve(.success(loop.mailbox))
                _ = loop.run()
            } catch {
                started.resolve(.failure(error))
            }
            service.control.stop()
            for backend in service.backends { backend.stop() }
        }
        loop = try started.wait().get()
        service.followPlacements()
        service.control.keepAll()
        service.control.awaitSurveys(within: Deadline.timeout)
    }

    deinit { loop.post(.drain) }

    private static func service(_ configuration: CRUDConfiguration.Configuration) throws -> Service {
        let control = PlacementControl(try Catalog(directory: configuration.stateDirectory), logger: logger)
        let cache = RecordCache(bytes: configuration.cacheBytes)
        let quotas = Quotas()
        let factory = BackendFactory(control: control, cache: cache, quotas: quotas, loopCount: 1, logger: logger)
        let backends = try configuration.backends.map { factory.make($0, try plugin.get(), .mayBeNew) }
        for case .failed(let failure) in try BackendFactory.open(backends) { throw failure }
        let service = Service(
            configuration: configuration, plugins: [try plugin.get()], backends: backends, control: control,
            cache: cache, quotas: quotas, loopCount: 1, logger: logger, decoding: try DecodingThread(cache),
            reload: { _, completion in
                completion(.failure(CRUDError(.unsupported, "there is no configuration file")))
            })
        service.setLayouts()
        return service
    }
}
