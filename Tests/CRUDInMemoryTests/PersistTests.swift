import CRUDInMemory
import CRUDTestSupport
import Foundation
import Testing

/// One record fed from several models, transactions, and modifications.
@Suite struct PersistTests {
    struct Member: Codable, Equatable, Persistable, Sendable {
        static let primaryKey = PrimaryKey(\Member.team, \Member.number)

        var team: String
        var number: Int
        var name: String?
        var visits: Int?
        var links: [String: String]?
        var isOnline: Bool?
    }

    /// What the network tells.
    struct Presence: Encodable, Persistable {
        static let primaryKey = PrimaryKey(\Presence.team, \Presence.number)

        var team: String
        var number: Int
        @Field var isOnline: Bool? = nil
        var links: [String: String]?
    }

    struct NoName: Error {}

    /// What a person types, in a shape of its own.
    struct NameForm: Encodable, Persistable {
        static let primaryKey = PrimaryKey(\NameForm.team, \NameForm.number)

        var team: String
        var number: Int
        var typed: String

        var stored: [String: String] {
            get throws {
                guard !typed.isEmpty else { throw NoName() }
                return ["team": team, "name": typed]
            }
        }
    }

    @Test(arguments: Backing.allCases)
    func modelsFeedOneRecord(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let members = collections.repository("members", of: Member.self)
        let new = try await members.persist(Member(team: "a:b", number: 7, visits: 1, links: ["x": "1"]))
        #expect(new == Member(team: "a:b", number: 7, visits: 1, links: ["x": "1"]))
        #expect(try await members.exists(id: "a%3Ab:7"))

        var presence = Presence(team: "a:b", number: 7, isOnline: true, links: ["y": "2"])
        var record = try await members.persist(presence)
        #expect(record == Member(team: "a:b", number: 7, visits: 1, links: ["x": "1", "y": "2"], isOnline: true))
        record = try await members.persist(NameForm(team: "a:b", number: 7, typed: "Ada"))
        #expect(record.name == "Ada")
        #expect(record.isOnline == true)
        // A plain nil and an absent field leave what is there, a null one removes it.
        presence.$isOnline = .absent
        presence.links = nil
        #expect(try await members.persist(presence) == record)
        presence.isOnline = nil
        record.isOnline = nil
        #expect(try await members.persist(presence) == record)
        #expect(try await members.read(id: record.recordID) == record)
        await #expect(throws: NoName.self) {
            try await members.persist(NameForm(team: "a:b", number: 7, typed: ""))
        }
        #expect(try await members.count() == 1)
    }

    @Test(arguments: Backing.allCases)
    func persistsMany(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let members = collections.repository("members", of: Member.self)
        let models = (0..<700).map { Member(team: "t", number: $0 % 600, visits: $0) }
        let persisted = try await members.persist(models)
        #expect(persisted == models)
        #expect(try await members.count() == 600)
        #expect(try await members.read(id: "t:99").visits == 699)
        #expect(try await members.persist([Member]()) == [])

    }

    /// The second of the two is not in the first request.
    @Test(arguments: Backing.allCases, [[299], [10, 299]])
    func anErrorLeavesTheOtherModelsAlone(_ backing: Backing, _ invalid: [Int]) async throws {
        let collections = try await backing.open()
        let members = collections.repository("members", of: Member.self)
        let models = (0..<300).map { Member(team: invalid.contains($0) ? "\u{0}" : "t", number: $0) }
        let error = await expectError(.invalidParams) { try await members.persist(models) }
        #expect(error?.details.index == invalid[0])
        #expect(error?.details.member == "id")
        #expect(try await members.count() == 300 - invalid.count)
    }

    @Test(arguments: Backing.allCases)
    func aRecordThatIsNoModelLeavesTheOthersAlone(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let members = collections.repository("members", of: Member.self)
        try await members.persist((100..<300).map { Member(team: "t", number: $0) })
        // They store no number, which a Member has.
        let forms = (0..<300).map { NameForm(team: "t", number: $0, typed: "n") }
        await #expect(throws: DecodingError.self) { try await members.persist(forms) }
        #expect(try await members.count() == 200)
        #expect(try await members.fetchAll().allSatisfy { $0.name == "n" })
        // In their order, and the first error is that of the first of them.
        let series = ["a", "b", "c"].map { NameForm(team: "t", number: 100, typed: $0) }
        #expect(try await members.persist(series).map(\.name) == ["a", "b", "c"])
        let error = await expectError(.invalidParams) {
            try await members.persist([series[2], NameForm(team: "\u{0}", number: 1, typed: "n"), forms[0]])
        }
        #expect(error?.details.index == 1)
    }

    /// Before, it was stored first, and the collection could not be read any more.
    @Test(arguments: Backing.allCases)
    func nothingIsStoredThatIsNoModel(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let members = collections.repository("members", of: Member.self)
        let form = NameForm(team: "t", number: 1, typed: "n")
        let error = await #expect(throws: DecodingError.self) { try await members.persist(form) }
        #expect("\(String(describing: error))".contains("t:1"))
        #expect(try await members.fetchAll() == [])
        await #expect(throws: DecodingError.self) { try await members.persist(form, expiresIn: .seconds(60)) }
        #expect(try await members.count() == 0)

        // Together with what is there it is one.
        try await members.create(Member(team: "t", number: 1, visits: 3), id: "t:1", expiresIn: .seconds(1000))
        #expect(try await members.persist(form) == Member(team: "t", number: 1, name: "n", visits: 3))
        #expect(try await members.readVersioned(id: "t:1").expiresAt != nil)
        #expect(try await members.persist(form, expiresIn: nil).name == "n")
        #expect(try await members.readVersioned(id: "t:1").expiresAt == nil)

        // A form that has all of a Part, which is thus stored where nothing was.
        struct Part: Codable, Equatable { var name: String }
        let parts = collections.repository("parts", of: Part.self)
        #expect(try await parts.persist(form) == Part(name: "n"))
    }

    /// Neither the request nor the reply, which has the whole records, is as long as all of them.
    @Test func persistsMoreThanAFrame() async throws {
        let daemon = try Daemon(Configuration(limits: "frame_bytes: 256KiB"))
        let store = try await CRUDClient.connect(path: daemon.socketPath).repository("members")
        let members = Repository<Member>(store)
        let name = String(repeating: "x", count: 32 << 10)
        let models = (0..<40).map { Member(team: "t", number: $0, name: name) }
        #expect(try await members.persist(models) == models)
        let visits = (0..<40).map { Member(team: "t", number: $0, visits: $0) }
        // The last one would fit into the reply before others: not before the other of its record is it applied.
        let visited = try await members.persist(visits + [Member(team: "t", number: 39, name: "", visits: 100)])
        #expect(visited.map(\.visits) == Array(0..<40) + [100])
        #expect(visited.dropLast().allSatisfy { $0.name == name })
        #expect(try await members.read(id: "t:39").visits == 100)
    }

    @Test func persistsMoreThanABatch() async throws {
        let daemon = try Daemon(Configuration(limits: "batch: 10"))
        let store = try await CRUDClient.connect(path: daemon.socketPath).repository("members")
        let models = (0..<25).map { Member(team: "t", number: $0) }
        #expect(try await Repository<Member>(store).persist(models) == models)
    }

    @Test(arguments: Backing.allCases)
    func concurrentModelsLeaveEachOthersFieldsAlone(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let members = collections.repository("members", of: Member.self)
        // A NameForm alone makes no member: it stores no number.
        try await members.persist(Member(team: "t", number: 1))
        try await withThrowingTaskGroup { group in
            for task in 0..<16 {
                group.addTask {
                    for round in 0..<20 {
                        switch task % 3 {
                        case 0: try await members.persist(Member(team: "t", number: 1, visits: round))
                        case 1: try await members.persist(NameForm(team: "t", number: 1, typed: "n\(round)"))
                        default:
                            try await members.persist(
                                Presence(team: "t", number: 1, isOnline: true, links: ["\(task)": "\(round)"]))
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        let record = try await members.read(id: "t:1")
        let links = Dictionary(uniqueKeysWithValues: (0..<16).filter { $0 % 3 == 2 }.map { ("\($0)", "19") })
        #expect(record == Member(team: "t", number: 1, name: "n19", visits: 19, links: links, isOnline: true))
    }

    @Test(arguments: Backing.allCases)
    func changesSomeMembers(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let members = collections.repository("members", of: Member.self)
        struct Change: Encodable {
            @Field var name: String?
            @Field var visits: Int? = 3
        }
        var change = Change()
        await expectError(.recordNotFound) { try await members.patch(id: "t:1", with: change) }
        let revision = try await members.create(Member(team: "t", number: 1, name: "A"))
        var member = try await members.patch(id: "t:1", with: change, ifRevision: revision)
        #expect(member == Member(team: "t", number: 1, name: "A", visits: 3))
        await expectError(.revisionMismatch) { try await members.patch(id: "t:1", with: change, ifRevision: revision) }
        change.name = nil
        member = try await members.patch(id: "t:1", with: change)
        #expect(member == Member(team: "t", number: 1, visits: 3))
    }
}
