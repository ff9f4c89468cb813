import ArgumentParser
import CRUDClient
import CRUDWire

extension CompletionKind {
    /// The names of the collections that the daemon lists; none if it does not reply. No command takes the name of a
    /// backend.
    static let collections = CompletionKind.custom { words, _, _ in
        // The shell has split the line into words, but not parsed it.
        let socket =
            words.firstIndex(of: "--socket").flatMap { words.dropFirst($0 + 1).first }
            ?? words.first { $0.hasPrefix("--socket=") }.map { String($0.dropFirst("--socket=".count)) }
        let list = try? await CRUDClient.withDeadline(in: .seconds(2)) {
            let options = CRUDClient.Options(name: Client.name)
            return try await CRUDClient.connect(path: socket, options: options).collections()
        }
        // The shell prints them as they are.
        return (list ?? []).map(\.name).filter { $0.unicodeScalars.allSatisfy(\.isPrintable) }
    }
}
