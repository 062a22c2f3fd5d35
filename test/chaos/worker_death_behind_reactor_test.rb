# frozen_string_literal: true

require "test_helper"
require "support/census"
require "support/keep_alive_load"
require "support/servers"

# Promise: a worker's death costs no client anything but a POST that it was doing, and that one gets its 502.
class WorkerDeathBehindReactorTest < Minitest::Test
  include Support::Servers

  parallelize_me! # they wait most of the time

  WORKERS = 4
  KILLS = 40
  SEED = Integer(ENV.fetch("CHAOS_SEED", Random.new_seed % 1_000_000))

  # Notes which worker does what, takes a while, and says so again when it is done.
  APP = <<~'RUBY'
    run lambda { |env|
      number = env["PATH_INFO"][/\d+/]
      File.write("begun", "#{number} #{Process.pid} #{env["pando.retry"]}\n", mode: "a")
      sleep 0.003
      [200, { "content-type" => "text/plain" }, ["pid #{Process.pid}"]]
    }
  RUBY

  def setup
    puts "CHAOS_SEED=#{SEED}"
    @random = Random.new(SEED)
    @server = serve(app: APP, config: "workers #{WORKERS}\nreactor true")
    @census = Support::Census.new(@server)
  end

  def teardown
    @load&.stop
    super
  end

  def test_no_get_fails
    @load = Support::KeepAliveLoad.start(@server.method(:connect), clients: 8)
    kill_workers
    @load.stop

    assert_empty @load.failures.map(&:to_a)
    assert_operator @load.outcomes.size, :>, KILLS
    assert_predicate begun.select { |_number, _pid, again| again }, :any?, "no kill hit a request"
  end

  def test_a_post_fails_cleanly_and_none_is_done_twice
    @load = Support::KeepAliveLoad.start(@server.method(:connect), clients: 8, method: "POST")
    kill_workers
    @load.stop

    assert_equal [502], @load.failures.map(&:status).uniq, @load.failures.filter_map(&:error).inspect
    twice = begun.map(&:first).tally.select { |_number, times| times > 1 }
    assert_empty twice
  end

  def test_a_request_that_kills_its_worker_is_not_given_to_the_next
    server = serve(app: <<~'RUBY', config: "workers 2")
      run lambda { |env|
        signal = env["PATH_INFO"][1..]
        File.write("begun", "#{signal}\n", mode: "a")
        Process.kill(signal, Process.pid)
        sleep
      }
    RUBY

    assert_equal([502, 502], %w[SEGV ABRT].map { |signal| server.get("/#{signal}").status })
    assert_equal(%W[SEGV\n ABRT\n], File.readlines(File.join(server.folder, "begun")))
  end

  def test_a_worker_that_dies_while_it_reads_a_streamed_body
    server = serve(app: <<~RUBY, config: %(workers 2\nstream_bodies "/up"))
      run lambda { |env|
        env["rack.input"].read(3)
        Process.kill(env["QUERY_STRING"], Process.pid)
        sleep
      }
    RUBY

    %w[KILL SEGV].each do |signal|
      socket = server.connect
      socket.write("POST /up?#{signal} HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc")
      assert_match(%r{\AHTTP/1.1 502 Bad Gateway\r\n.*502 Bad Gateway\n\z}m, socket.read)
    ensure
      socket&.close
    end
  end

  # What the application has forked may keep the client's socket: the kernel then tells the reactor of that client's
  # end, whose connection's place is another one's by now.
  def test_the_end_of_a_client_whose_worker_died_is_no_others
    server = serve(app: <<~RUBY, config: %(workers 3\nstream_bodies "/up"))
      run lambda { |env|
        case env["PATH_INFO"]
        when "/up"
          env["rack.input"].read(3)
          File.write("helper", fork { sleep }.to_s)
          Process.kill("KILL", Process.pid)
        when "/slow"
          hold_until("go")
        end
        [200, {}, ["served"]]
      }
    RUBY
    reactor = server.tree.children.find { |one| one.title.start_with?("pando reactor") }.pid
    descriptors = -> { Dir.children("/proc/#{reactor}/fd").size }
    before = descriptors.call
    upload = server.connect
    upload.write("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc")
    assert_match(/ 502 /, upload.gets)
    wait_until(message: "the end of its connection") { descriptors.call <= before }
    others = Array.new(6) { server.connect.tap { |one| one.write("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n") } }
    wait_until(message: "six connections") { descriptors.call >= before + 6 }
    upload.setsockopt(Socket::Option.linger(true, 0))
    upload.close
    File.write(File.join(server.folder, "go"), "")

    assert_equal(["HTTP/1.1 200 OK\r\n"] * 6, others.map(&:gets))
  ensure
    [upload, *others].compact.each(&:close)
    server && Process.kill("KILL", File.read(File.join(server.folder, "helper")).to_i)
  end

  def test_a_get_that_kills_each_worker_is_tried_twice
    server = serve(app: <<~'RUBY', config: "workers 2")
      run lambda { |env|
        File.write("begun", "#{env["pando.retry"].inspect}\n", mode: "a")
        Process.kill("KILL", Process.pid)
        sleep
      }
    RUBY

    assert_equal(502, server.get("/").status)
    assert_equal(%W[nil\n true\n], File.readlines(File.join(server.folder, "begun")))
  end

  def test_without_retry_a_get_is_tried_once
    server = serve(app: 'run ->(env) { Process.kill("KILL", Process.pid); sleep }',
                   config: "workers 2\nretry_requests false")

    assert_equal(502, server.get("/").status)
  end

  def test_a_worker_that_is_killed_for_its_time_leaves_a_504
    server = serve(app: <<~RUBY, config: "workers 1\ntimeout 0.3, grace: 0.2")
      run lambda { |env|
        begin
          sleep
        rescue Exception
          retry
        end
      }
    RUBY
    answer = server.get("/")

    assert_equal(504, answer.status)
    assert_equal("close", answer.headers["connection"])
    assert_match(/hard timeout/, server.wait_past("worker.killed")["reason"])
  end

  private

  def kill_workers
    KILLS.times do
      @load.wait_for_more(@random.rand(1..20))
      victim = @census.workers(WORKERS).compact.sample(random: @random)
      Process.kill("KILL", victim) if victim
      @load.wait_for_each_client # a request is tried twice, not three times
    rescue Errno::ESRCH
      nil
    end
    @load.wait_for_more(100)
  end

  # @return [Array(String, String, String or nil)] number, pid and whether it was the second try
  def begun = File.readlines(File.join(@server.folder, "begun")).map(&:split)
end
