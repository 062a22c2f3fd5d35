# frozen_string_literal: true

require "test_helper"
require "json"
require "support/server_process"
require "tmpdir"
require "uri"
require_relative "../../../bench/support/bundle"

# What every real app has to show. A test class that includes this names its folder in test/fixtures/apps. All of
# those apps keep notes in an SQLite database, and a count of visits in a session cookie:
#
#   GET /             a page with the number of notes and of visits
#   POST /notes       stores a note, which names its writer's pid
#   GET /notes/ID     the note
#
# The answers as JSON carry a random token and a random number, which would repeat in two processes that
# share the state of a generator.
module RealApp
  WORKERS = 2
  REFORKS = 10
  CLIENTS = 4
  TROUBLE = /\.(?:lost|killed|failed|discarded|refused|unsafe|reported)\z/
  ROUNDS_AT_MOST = 100 # of each client, in a generation

  def setup
    @folder = Dir.mktmpdir("pando-app")
    bundle = Bench::Bundle.new(app, fixture("Gemfile")).prepare
    @server = Support::ServerProcess.start(
      arguments: [fixture("config.ru"), "-w", WORKERS, "--refork", "manual", "-e", "production"].map(&:to_s),
      config: config, env: bundle.environment.merge("APP_DATABASE" => database, "RAILS_ENV" => "production")
    )
    @notes = [] # threads append to these
    @tokens = []
  end

  def teardown
    @server&.kill
    FileUtils.rm_rf(@folder)
  end

  def test_serves_and_survives_reforks
    every_worker_reads_and_writes(0)
    1.upto(REFORKS) do |generation|
      assert_equal generation, @server.refork["generation"]
      every_worker_reads_and_writes(generation)
    end

    assert_includes @server.get("/").body, "#{@notes.size} note"
    assert_equal @tokens.size, @tokens.uniq.size, "two answers carry the same random token or number"
    assert_empty troubles
    assert_predicate @server.stop, :success?
  end

  private

  def config = File.exist?(fixture("config/pando.rb")) ? File.read(fixture("config/pando.rb")) : ""
  def fixture(*names) = File.expand_path(File.join("../../fixtures/apps", app, *names), __dir__)
  def database = File.join(@folder, "notes.sqlite3")
  def troubles = @server.events.select { |event| TROUBLE.match?(event["event"]) }

  # Clients work side by side until each worker of the generation has written a note and read one.
  def every_worker_reads_and_writes(generation)
    workers = worker_pids(generation)
    writers = []
    readers = []
    done = -> { (workers - writers).empty? && (workers - readers).empty? }
    Array.new(CLIENTS) { |client| Thread.new { work("client #{client} in #{generation}", writers, readers, done) } }
         .each(&:join)
    assert_equal workers.sort, writers.uniq.sort, "the writers in generation #{generation}"
    assert_equal workers.sort, readers.uniq.sort, "the readers in generation #{generation}"
  end

  def worker_pids(generation)
    wait_until(message: "#{WORKERS} workers, all of generation #{generation}") do
      workers = @server.workers
      workers.map(&:pid) if workers.size == WORKERS && workers.all? { |one| one.title.include?("gen #{generation}") }
    end
  end

  def work(name, writers, readers, done)
    cookie = nil
    1.upto(ROUNDS_AT_MOST) do |round|
      cookie = visit(cookie, round)
      note = write_note("note #{round} of #{name}")
      writers << note["writer"]
      readers << read_note(note)
      break if done.call
    end
  end

  # @return [String] the session's cookie
  def visit(cookie, visits)
    answer = @server.get("/", cookie ? { "Cookie" => cookie } : {})
    assert_equal 200, answer.status, answer.body
    assert_includes answer.body, "Visit #{visits}<"
    answer.headers.fetch("set-cookie")[/\A[^;]+/]
  end

  def write_note(text)
    answer = @server.request("POST", "/notes", { "Content-Type" => "application/x-www-form-urlencoded" },
                             URI.encode_www_form(text: text))
    assert_equal 201, answer.status, answer.body
    note = JSON.parse(answer.body)
    assert_equal [text, answer.headers["x-worker"].to_i], note.values_at("text", "writer")
    remember(note)
    @notes << note["id"]
    note
  end

  # @return [Integer] pid of the worker that answered
  def read_note(note)
    answer = @server.get("/notes/#{note["id"]}")
    assert_equal 200, answer.status, answer.body
    found = JSON.parse(answer.body)
    assert_equal note.slice("id", "text", "writer"), found.slice("id", "text", "writer")
    remember(found)
    answer.headers["x-worker"].to_i
  end

  def remember(answer) = @tokens.push(answer.fetch("token")).push(answer.fetch("draw"))
end
