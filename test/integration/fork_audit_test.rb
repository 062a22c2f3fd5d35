# frozen_string_literal: true

require "test_helper"
require "socket"
require "support/servers"

# Promise: what a fork shares that must not be shared is found before it does harm, and what is done
# about it is what the configuration says.
class ForkAuditTest < Minitest::Test
  include Support::Servers

  # A library that keeps one connection for its process and does not notice forks.
  APP = <<~'RUBY'
    require "socket"
    module Store
      def self.connection = @connection ||= TCPSocket.new("127.0.0.1", Integer(ENV.fetch("STORE")))

      def self.drop
        @connection&.close
        @connection = nil
      end
    end
    Store.connection if ENV["AT_BOOT"]
    run lambda { |env|
      answer = case env["PATH_INFO"]
               when "/ask" then Store.connection.puts("from #{Process.pid}") || Store.connection.gets.to_s
               when "/leave" then ""
               end
      [200, {}, ["#{Process.pid} #{answer}"]]
    }
  RUBY

  def setup
    @store = TCPServer.new("127.0.0.1", 0)
    @lines = Queue.new
    @accepted = []
    @keeper = Thread.new { loop { look_after(@store.accept) } }
  end

  def teardown
    super
    @keeper.kill
    @keeper.join
    [@store, *@accepted].each(&:close)
  end

  def test_a_shared_connection_is_reported_with_its_peer_and_the_line
    server = with_store("fork_safety trace: true")
    ask(server)
    server.refork
    found = server.wait_past("finding.reported", kind: "shared_socket", role: "mold")

    assert_equal([1, "tcp connection to 127.0.0.1:#{port}", "error"],
                 found.values_at("generation", "subject", "severity"))
    assert_equal("#{server.folder}/config.ru:3", found["location"])
    server.wait_past("audit.finished", generation: 1)
    assert_equal("shared_socket", server.wait_past("finding.reported", role: "worker", generation: 1)["kind"])
  end

  def test_close_cuts_the_new_process_off_and_leaves_the_old_ones_connection_alone
    server = with_store("fork_safety sockets: :close")
    ask(server)
    source = @accepted.first
    server.refork

    assert_equal("closed", server.wait_past("finding.reported", kind: "shared_socket", role: "mold")["action"])
    assert_empty(server.events("finding.reported").select { |event| event["role"] == "worker" })
    assert_equal(500, server.get("/ask").status)
    assert_match(/Broken pipe/, server.wait_past("request.failed", generation: 1)["error"].to_s, "it looks hung up")
    assert_nil(source.read(1), "its last copy went with its owner, and nothing else was heard")
  end

  def test_refuse_lets_no_generation_with_a_shared_connection_serve
    server = with_store("fork_safety sockets: :refuse")
    ask(server)
    discarded = server.wait_for("generation.discarded") { server.signal("USR2") }

    assert_match(/connection to 127\.0\.0\.1:#{port} is open .* refused by fork_safety sockets:/, discarded["reason"])
    assert_equal("refused", server.events("finding.reported").first["action"])
    pids = Array.new(10) { Integer(server.get("/").body) }
    assert_equal([server.workers.first.pid], pids.uniq)
    assert_equal([0], server.events("worker.ready").map { |event| event["generation"] }.uniq)
    assert_match(/from #{pids.first}/, server.get("/ask").body)
  end

  def test_refuse_lets_no_worker_serve_with_a_connection_of_the_mold
    server = with_store("fork_safety sockets: :refuse", env: { "AT_BOOT" => "1" }, ready: false)
    status = server.wait_for_exit

    assert_equal(1, status.exitstatus)
    assert_empty(server.events("worker.ready"))
    assert_match(/refused by fork_safety sockets:/, server.events("worker.failed").first["reason"])
  end

  def test_refuse_has_nothing_against_a_connection_that_a_hook_drops
    server = with_store("fork_safety sockets: :refuse\nbefore_fork { Store.drop }", env: { "AT_BOOT" => "1" })
    ask(server)
    server.refork

    ask(server)
    assert_empty(server.events("finding.reported"))
  end

  def test_nor_against_one_that_is_kept
    server = with_store("fork_safety sockets: :refuse\nkeep_io \"127.0.0.1:#{port}\"")
    ask(server)
    server.refork

    assert_empty(server.events("finding.reported"))
  end

  PAIR = <<~RUBY
    require "socket"
    run ->(_env) { ($pair ||= UNIXSocket.pair) && [200, {}, []] }
  RUBY

  # Both ends of a pair are a note.
  def test_a_note_is_told_and_counted_if_something_is_done
    { report: nil, close: "closed", refuse: "refused" }.each do |policy, action|
      server = serve(app: PAIR, config: "workers 1\nrefork :manual\nfork_safety sockets: :#{policy}")
      server.get("/")
      audit = server.wait_for("audit.finished") { server.signal("USR2") }
      told = server.events("finding.reported").select { |event| event["role"] == "mold" }

      assert_equal([*action], told.map { |event| event["action"] }.uniq, policy.to_s)
      assert_equal(told.sum { |event| event["count"] }, audit["findings"], policy.to_s)
    end
  end

  # The leak of a mold that some service thread of the app runs in: a socket a second, closed by nobody.
  LEAK = <<~RUBY
    after_mold_fork do
      Thread.new do
        loop do
          (@leaked ||= []) << TCPSocket.new("127.0.0.1", Integer(ENV.fetch("STORE")))
          sleep(1)
        end
      end
    end
  RUBY

  def test_a_leak_of_one_socket_a_second_is_found_within_ten_seconds
    server = with_store("fork_safety trace: true, threads: :allow\n#{LEAK}")
    began = Support::FairClock.now
    found = server.wait_past("finding.reported", kind: "growing_descriptors", patience: 90)
    seconds = Support::FairClock.now - began

    assert_operator(seconds, :<, 10)
    assert_equal(["tcp connection to 127.0.0.1:#{port}", "mold"], found.values_at("subject", "role"))
    assert_match(/pando\.rb:\d+\z/, found["location"])
  end

  SERVICE = <<~RUBY
    workers 2
    refork :manual
    service(:idler) { |service| service.wait(1) until service.stopping? }
  RUBY
  CLEAN = <<~RUBY
    require "logger"
    require "socket"
    require "timeout"
    LOG = Logger.new(File.open("app.log", "a"))
    READ = File.read(__FILE__)
    STATS = UDPSocket.new.tap { |socket| socket.connect("127.0.0.1", 9) }
    run lambda { |env|
      Timeout.timeout(5) { LOG.info("a request") }
      STATS.send("requests:1|c", 0) rescue nil
      Thread.new { :done }.join
      IO.popen(["true"]).close
      [200, {}, ["fine"]]
    }
  RUBY

  def test_nothing_is_reported_on_a_clean_app
    [true, false].each do |reactor|
      server = serve(app: CLEAN, config: "#{SERVICE}\nreactor #{reactor}")
      3.times do
        4.times { server.get("/") }
        server.refork
      end
      server.wait_past("audit.finished", generation: 3)

      assert_empty(server.events("finding.reported"), "reactor #{reactor}")
      assert_equal([0], server.events("audit.finished").map { |event| event["findings"] }.uniq)
    end
  end

  private

  def with_store(config, env: {}, **options)
    serve(app: APP, config: "workers 1\nrefork :manual\n#{config}", env: { "STORE" => port.to_s, **env }, **options)
  end

  def port = @store.addr[1]
  def ask(server) = assert_match(/from/, server.get("/ask").body)

  def look_after(socket)
    @accepted << socket
    Thread.new do
      while (line = socket.gets)
        socket.puts(line)
      end
    rescue SystemCallError, IOError
      nil
    end
  end
end
