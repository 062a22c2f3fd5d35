# frozen_string_literal: true

require "test_helper"
require "json"
require "support/server_process"
require "tmpdir"
require_relative "../../../bench/support/bundle"

# What an app with a real library has to show, across reforks: every worker answers, each answer is to the question of
# the client that asked, and no two processes use one connection. A test class that includes this names its
# app in test/fixtures/apps/libraries, and gives it what it needs in #environment.
module LibraryApp
  WORKERS = 2
  REFORKS = 3
  CLIENTS = 4
  TROUBLE = /\.(?:lost|killed|failed|discarded|refused|unsafe|timed_out)\z/
  ROUNDS_AT_MOST = 200 # of each client, in a generation
  FIXTURES = File.expand_path("../../fixtures/apps/libraries", __dir__)

  def setup
    skip obstacle if obstacle

    @folder = Dir.mktmpdir("pando-lib")
    File.chmod(0o755, @folder) # another user's server may be in it
    @bundle = Bench::Bundle.new("libraries", File.join(FIXTURES, "Gemfile")).prepare
    @owners = {} # connection => pid of the worker that used it
    @lock = Mutex.new
    prepare
    @server = Support::ServerProcess.start(
      arguments: [File.join(FIXTURES, "config.ru"), "-w", WORKERS, "--refork", "manual"].map(&:to_s), config: config,
      env: @bundle.environment.merge("APP_LIBRARY" => app, "GRPC_ENABLE_FORK_SUPPORT" => nil, **environment)
    )
  end

  def teardown
    @server&.kill
    clean_up
    FileUtils.rm_rf(@folder) if @folder
  end

  private

  # @return [String, nil] why this machine cannot run it
  def obstacle = nil
  def prepare; end
  def clean_up; end
  def environment = {}

  # Before anybody has asked it for something.
  def assert_ready(_generation); end

  def config = ""

  def survive_reforks
    ask_every_worker(0)
    1.upto(REFORKS) do |generation|
      assert_equal generation, @server.refork["generation"]
      assert_ready(generation)
      ask_every_worker(generation)
      yield generation if block_given?
    end
    assert_empty troubles
    assert_predicate @server.stop, :success?
  end

  def troubles = @server.events.select { |event| TROUBLE.match?(event["event"]) }
  def verdicts = @server.wait_past("libraries.checked")

  # Clients work side by side until each worker of the generation has answered a few times.
  # @return [Array<Hash>] the answers
  def ask_every_worker(generation, path = "/echo")
    workers = worker_pids(generation)
    answers = []
    done = -> { @lock.synchronize { workers.all? { |pid| answers.count { |one| one["worker"] == pid } >= 3 } } }
    Array.new(CLIENTS) { |client| Thread.new { work("#{client}-in-#{generation}", path, answers, done) } }.each(&:join)
    assert_empty workers - answers.map { |one| one["worker"] }, "workers without an answer in generation #{generation}"
    answers
  end

  def worker_pids(generation)
    wait_until(message: "#{WORKERS} workers, all of generation #{generation}") do
      workers = @server.workers
      workers.map(&:pid) if workers.size == WORKERS && workers.all? { |one| one.title.include?("gen #{generation}") }
    end
  end

  def work(client, path, answers, done)
    1.upto(ROUNDS_AT_MOST) do |round|
      answer = ask(path, "question-#{round}-of-#{client}")
      @lock.synchronize { answers << answer }
      break if done.call
    end
  end

  def ask(path, text)
    response = @server.get("#{path}?#{text}")
    assert_equal 200, response.status, -> { @server.events("request.failed").last.inspect }
    answer = JSON.parse(response.body)
    assert_equal text, answer["echo"]
    own(answer["connection"], answer["worker"])
    answer
  end

  # No connection was ever used by two processes.
  def own(connection, worker)
    return unless connection

    owner = @lock.synchronize { @owners[connection.to_s] ||= worker }
    assert_equal owner, worker, "the user of connection #{connection}"
  end

  # @param generation [Integer] whose workers are all that is left
  # @return [Array<String>] the connections that its workers used
  def connections_of(generation)
    workers = worker_pids(generation)
    @owners.select { |_, pid| workers.include?(pid) }.keys.sort
  end
end
