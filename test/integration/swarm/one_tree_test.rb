# frozen_string_literal: true

require "test_helper"
require "json"
require "tmpdir"
require "uri"
require "pando/cli/control_client"
require "support/redis_server"
require "support/servers"
require "support/waiting"
require_relative "../../../bench/support/bundle"

# Promise: a Rails application and its Sidekiq jobs run in one server, from one mold or from two. What workers order
# nodes do; each kind is reforked, and the stop lets the jobs of the ones end when the others have gone.
class OneTreeTest < Minitest::Test
  include Support::Servers
  include Support::Waiting

  FIXTURES = File.expand_path("../../fixtures", __dir__)
  RAILS = File.join(FIXTURES, "apps/rails")

  def self.bundle
    @bundle ||= Bench::Bundle.new("one-tree", File.join(FIXTURES, "swarm/one_tree/Gemfile")).prepare
  end

  def setup
    skip Support::RedisServer.obstacle if Support::RedisServer.obstacle

    super
    @folder = Dir.mktmpdir("pando-tree")
    @redis = Support::RedisServer.new(@folder).start
  end

  def teardown
    super
    @redis&.stop
    FileUtils.rm_rf(@folder) if @folder
  end

  def test_from_one_mold
    File.write(noting = File.join(@folder, "noting.rb"), NOTING)
    server = start("shared: true", noting)
    assert_equal(1, cold_boots(server))
    work(server, %w[one two])
    answers = under_requests(server) { %w[web sidekiq].each { |pool| refork(server, pool) } }
    assert_equal([200], answers.uniq)
    work(server, %w[three four])
    a_quiet_time(server, "five")

    assert_equal(1, cold_boots(server))
    a_stop(server, "six")
  end

  def test_from_two
    server = start("shared: false")
    assert_equal(2, cold_boots(server))
    work(server, %w[one])

    assert_predicate(server.stop, :success?, server.output)
    assert_empty(troubles(server))
  end

  # In Sidekiq's own words.
  NOTING = <<~'RUBY'
    Sidekiq.configure_server { |config| config.on(:quiet) { File.write("quiet", "#{Process.pid}\n", mode: "a") } }
  RUBY

  private

  # In a session of its own, without a terminal, as in a container: there TSTP is for the nodes.
  def start(sharing, *files)
    config = <<~RUBY
      workers 2
      refork :manual
      stop_timeout 20
      control "control.sock"
      rackup #{File.join(RAILS, "config.ru").dump}
      node :sidekiq, concurrency: 2, require: #{[File.join(RAILS, "config/environment.rb"), *files]}, #{sharing}
    RUBY
    serve(config: config, arguments: %w[-e production], env: environment, wrapper: %w[setsid])
      .tap { |server| server.wait_past("generation.current", pool: "sidekiq") }
  end

  def environment
    variables = { "REDIS_URL" => @redis.url, "APP_QUEUE" => "sidekiq", "RAILS_ENV" => "production" }
    self.class.bundle.environment.merge("APP_DATABASE" => File.join(@folder, "notes.sqlite3"), **variables)
  end

  # One that was forked from another pool's has no pid yet when it is told of.
  def cold_boots(server) = server.events("mold.booting").count { |event| event["pid"] }

  def order(server, text, file = nil)
    answer = server.request("POST", "/later", { "Content-Type" => "application/x-www-form-urlencoded" },
                            URI.encode_www_form({ text: text, file: file }.compact))
    assert_equal(202, answer.status, answer.body)
  end

  # What is ordered is done by a node.
  def work(server, texts)
    texts.each { |text| order(server, text) }
    wait_until(message: -> { "#{texts}: #{notes(server)}\n#{server.output}" }) do
      (texts - notes(server).keys).empty?
    end

    assert_empty(notes(server).values_at(*texts) - nodes(server).keys)
  end

  # @return [Hash{Integer => Integer}] the generation of each that has ever been ready
  def nodes(server)
    ready = server.events("worker.ready").select { |event| event["pool"] == "sidekiq" }
    ready.to_h { |event| event.values_at("pid", "generation") }
  end

  # @return [Hash{String => Integer}] the pid of the writer of each text
  def notes(server) = JSON.parse(server.get("/writers").body).to_h

  # Right after a rollout the old ones may still be leaving.
  def refork(server, pool)
    outcome = said = nil
    wait_until(message: -> { said }) do
      outcome, said = ask(server, "refork", pool: pool)
      outcome == "ok" || !said["reason"].include?("refused")
    end

    assert_equal("ok", outcome, said)
  end

  def ask(server, word, pairs = {})
    Pando::CLI::ControlClient.new(File.join(server.folder, "control.sock")).ask(word, pairs, timeout: 60) { nil }
  end

  # Nodes are quiet, workers serve.
  def a_quiet_time(server, text)
    server.wait_for("nodes.quiet") { server.signal("TSTP") }
    wait_until(message: -> { server.output }) { quiet?(server) }
    order(server, text)

    refute_includes(notes(server), text)
    assert_equal("ok", ask(server, "quiet", undo: true).first)
    wait_until(message: -> { server.output }) { notes(server).key?(text) }
  end

  def quiet?(server)
    file = File.join(server.folder, "quiet")
    (server.nodes("sidekiq").map(&:pid) - (File.exist?(file) ? File.readlines(file).map(&:to_i) : [])).empty?
  end

  def a_stop(server, text)
    order(server, text, go = File.join(@folder, "go"))
    # It runs: one that has just been taken would be given back.
    wait_until(message: -> { server.output }) { server.nodes("sidekiq").any? { |node| node.title.end_with?("busy") } }
    server.signal("TERM")
    2.times { |slot| server.wait_past("worker.exited", pool: "web", slot: slot, reason: "TERM") }

    assert_predicate(server, :alive?)
    File.write(go, "")
    assert_predicate(server.wait_for_exit, :success?, server.output)
    assert_empty(@redis.call("KEYS", "queue:*") + @redis.call("KEYS", "pando:*"))
    assert_empty(troubles(server))
  end

  def troubles(server) = server.complaints.reject { |event| event["event"] == "refork.refused" }
end
