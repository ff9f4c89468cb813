import CRUDClient

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Android)
import Android
#else
import Darwin
#endif

/// A model that this application stores. In which database is decided by the daemon's configuration.
struct Client: Codable, Equatable {
    var name: String
}

/// A model that it also queries.
struct Visit: Codable, Identifiable, Queryable {
    var id: Int
    var client: String
    var minutes: Int

    struct Properties {
        let minutes = Property(\Visit.minutes, CodingKeys.minutes)
    }
    static let properties = Properties()
}

/// Prints a title, runs `work` and prints its result.
@discardableResult
func step<Result>(_ title: String, _ work: () async throws -> Result) async throws -> Result {
    print(title.padded(to: 44), terminator: "")
    let result = try await work()
    print(result is Void ? "done" : "\(result)")
    return result
}

extension String {
    func padded(to width: Int) -> String { self + String(repeating: " ", count: max(1, width - count)) }
}

do {
    let client = try await CRUDClient.connect()
    print("Connected to \(client.path)\n")
    let repository: any CRUDRepository = client.repository("Clients Database")
    // Records of an earlier run.
    for id in ["client", "clientArray"] where try await repository.exists(id: id) {
        try await repository.delete(id: id)
    }

    try await step("Creating client \"Chill Client\"") {
        try await repository.create(id: "client", item: Client(name: "Chill Client"))
    }
    var record = try await step("Reading it") { try await repository.read(id: "client", as: Client.self) }

    record.name = "Busy Client"
    let busy = record
    try await step("Renaming it to \"Busy Client\"") { try await repository.update(id: "client", item: busy) }
    record = try await step("Reading it again") { try await repository.read(id: "client") }

    try await step("Deleting it") { try await repository.delete(id: "client") }
    try await step("Reading the deleted record") {
        do {
            let gone: Client = try await repository.read(id: "client")
            throw CRUDError(.internalError, "\(gone) still exists")
        } catch let error as CRUDError where error.code == .recordNotFound {
            return error
        }
    }

    let clients = [record, Client(name: "Chill Client")]
    try await step("Creating an array of two clients") { try await repository.create(id: "clientArray", item: clients) }
    let read = try await step("Reading the array") { try await repository.read(id: "clientArray", as: [Client].self) }
    guard read == clients else { throw CRUDError(.internalError, "the array that was read differs") }

    let visits = client.repository("visits", of: Visit.self)
    try await visits.removeAll()
    try await step("Recording three visits") {
        try await visits.persist([
            Visit(id: 1, client: "Ada", minutes: 20), Visit(id: 2, client: "Bob", minutes: 50),
            Visit(id: 3, client: "Cem", minutes: 90),
        ]).count
    }
    try await step("Extending Ada's visit by 15 minutes") {
        try await visits.modify(id: 1) { $0.minutes += 15 }.minutes
    }
    try await step("Finding visits of 30 to 60 minutes") {
        try await visits.fetch { $0.minutes.between(30, 60) }.map(\.client)
    }
    print("\nAll steps succeeded.")
} catch {
    print("\nThis step failed: \(error)")
    exit(1)
}
