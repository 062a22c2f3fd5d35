# frozen_string_literal: true

require "test_helper"
require "json"
require "support/server_process"
require "support/sink"
require "tmpdir"
require_relative "../../../bench/support/bundle"

# Libraries in the third generation: the app of test/fixtures/apps/library_rows loads one group of them, each is used
# in generation 0, there are three reforks, and generation 3 uses each library again. What it says there must reach the
# sink from exactly that process.
module RowsApp
  REFORKS = 3
  FOLDER = File.expand_path("../../fixtures/apps/library_rows", __dir__)
  TROUBLE = /\.(?:lost|killed|failed|discarded|refused|unsafe|timed_out)\z/

  def setup
    skip obstacle if obstacle

    @folder = Dir.mktmpdir("pando-rows")
    File.chmod(0o755, @folder) # another user's server may be in it
    @bundle = Bench::Bundle.new("library-rows-#{group}", File.join(FOLDER, "#{group}.Gemfile")).prepare
    @sink = Support::Sink.new(answers)
    prepare
  end

  def teardown
    @server&.kill
    @sink&.close
    clean_up
    FileUtils.rm_rf(@folder) if @folder
  end

  private

  # @return [String, nil] why this machine cannot run it
  def obstacle = nil
  def prepare; end
  def clean_up; end
  def environment = {}
  def config = ""
  def answers = {}

  # @param rows [Array<String>]
  def start(rows, workers: 1)
    @server = Support::ServerProcess.start(
      arguments: [File.join(FOLDER, "config.ru"), "-w", workers.to_s, "--refork", "manual"],
      config: "timeout 60\n#{config}",
      env: @bundle.environment.merge("APP_ROWS" => group, "APP_ONLY" => rows.join(","), "APP_SINK" => @sink.url,
                                     "APP_SINK_UDP" => @sink.udp_port.to_s, "RACK_ENV" => "production", **environment)
    )
  end

  # @return [Array<Hash>] of each row's use in the third generation: row, worker, result
  def third_generation_uses(rows)
    uses = use_all(rows, 0)
    threads = use("threads")["result"]
    1.upto(REFORKS) do |generation|
      assert_equal generation, @server.refork["generation"]
      uses = use_all(rows, generation)
    end
    assert_lives(threads)
    assert_empty troubles
    uses
  end

  # Whatever thread lived in generation 0 lives in the third one too.
  def assert_lives(threads)
    missing = nil
    wait_until(timeout: 30, message: -> { "the threads of #{missing}" }) do
      missing = (threads - use("threads")["result"]).grep_v(temporary_threads)
      missing.empty?
    end
  end

  # @return [Regexp] where threads come from that end by themselves
  def temporary_threads = /(?!)/

  def troubles = @server.events.select { |event| TROUBLE.match?(event["event"]) }

  # One worker serves, so that it is also the one that is promoted, with all that the uses have started in it.
  def use_all(rows, generation)
    worker = worker_pid(generation)
    rows.map do |row|
      use(row).tap { |use| assert_equal worker, use["worker"] }
    end
  end

  # @return [Hash]
  def use(row)
    response = @server.get("/#{row}")
    assert_equal 200, response.status, "#{row}: #{response.body}"
    JSON.parse(response.body).merge("row" => row)
  end

  def worker_pid(generation)
    wait_until(message: "one worker, of generation #{generation}") do
      workers = @server.workers
      workers.first.pid if workers.size == 1 && workers.first.title.include?("gen #{generation}")
    end
  end
end
