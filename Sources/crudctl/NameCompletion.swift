import ArgumentParser
import CRUDClient
import CRUDWire

extension CompletionKind {
    /// The names of the collections that the daemon lists; none if it does not reply.
    static let collections = CompletionKind.custom { words, _, _ in
        await collectionNames(words)
    }

    /// The names of the backends that the daemon lists; none if it does not reply.
    static let backends = CompletionKind.custom { words, _, _ in
        await backendNames(words)
    }

    /// The same for a line whose words may have `--socket`.
    static func collectionNames(_ words: [String]) async -> [String] {
        await names(words) { try await $0.collections().map(\.name) }
    }

    /// As above.
    static func backendNames(_ words: [String]) async -> [String] {
        await names(words) { client in
            let result = ResultObject(try await client.call("backend.list", json: Array("{}".utf8)))
            return (result?.elements("backends") ?? []).compactMap { ResultObject(Array($0))?.string("name") }
        }
    }

    /// - Parameters:
    ///   - words: of the line, which the shell has split but not parsed.
    ///   - list: asks the daemon.
    private static func names(
        _ words: [String], _ list: @escaping @Sendable (CRUDClient) async throws -> [String]
    ) async -> [String] {
        let socket =
            words.firstIndex(of: "--socket").flatMap { words.dropFirst($0 + 1).first }
            ?? words.first { $0.hasPrefix("--socket=") }.map { String($0.dropFirst("--socket=".count)) }
        let names = try? await CRUDClient.withDeadline(in: .seconds(2)) {
            let options = CRUDClient.Options(name: Client.name)
            return try await list(try await CRUDClient.connect(path: socket, options: options))
        }
        // The shell prints them as they are.
        return (names ?? []).filter { $0.unicodeScalars.allSatisfy(\.isPrintable) }
    }
}
