# frozen_string_literal: true

require "fileutils"
require "json"
require "tmpdir"
require "support/redis_server"
require "support/servers"
require "support/waiting"
require_relative "../../bench/support/bundle"

module Support
  # Servers whose job nodes run Sidekiq, with their own Redis. The jobs are those of
  # test/fixtures/swarm/sidekiq/jobs.rb.
  module SidekiqSwarm
    include Servers
    include Waiting

    FIXTURES = File.expand_path("../fixtures/swarm/sidekiq", __dir__)
    JOBS = File.join(FIXTURES, "jobs.rb")

    def setup
      skip RedisServer.obstacle if RedisServer.obstacle

      super
      @folder = Dir.mktmpdir("pando-sidekiq")
      @bundle = Bench::Bundle.new("swarm-sidekiq", File.join(FIXTURES, "Gemfile")).prepare
      @redis = RedisServer.new(@folder, keep: keep?).start
    end

    def teardown
      super
      @traces&.each_value { |file, _| file.close }
      @redis&.stop
      FileUtils.rm_rf(@folder) if @folder
    end

    private

    # Whether Redis keeps all data when it is killed.
    def keep? = false

    # @param node [String] further arguments of the `node` line
    # @param config [String] further lines
    def swarm(node = "count: 2", config = "refork :manual", required: JOBS, env: {})
      line = "node :sidekiq, #{node}, require: #{required.inspect}"
      serve(command: "swarm", config: "#{config}\n#{line}", listen: false, env: environment.merge(env))
    end

    def environment = @bundle.environment.merge("REDIS_URL" => @redis.url)

    # Enqueues jobs as Sidekiq's client does.
    # @param arguments [Array<Array>] of each job
    # @return [Array<String>] the ids of the jobs
    def order(*arguments, job: "Job", queue: "default")
      now = Time.now.to_f
      common = { class: job, queue: queue, retry: false, created_at: now, enqueued_at: now }
      ids = arguments.map { format("%024x", Random.rand(1 << 96)) }
      texts = ids.zip(arguments).map { |id, args| JSON.generate(**common, jid: id, args: args) }
      texts.each_slice(1000) { |some| @redis.call("LPUSH", "queue:#{queue}", *some) }
      ids
    end

    # @return [Hash{String => Array<Integer>}] by the job's name, pids of the nodes that have started it, first to last
    def began(server) = traces(server, "began")

    # @return [Hash{String => Array<Integer>}] by the job's name, pids of the nodes in which it has ended
    def ended(server) = traces(server, "ended")

    # Continues reading where it ended the last time, because there may be many lines.
    def traces(server, what)
      path = File.join(server.folder, "#{what}.log")
      file, known = (@traces ||= {})[path] ||= [File.open(path, File::RDONLY | File::CREAT), {}]
      file.each_line { |line| line.split.then { |name, pid| (known[name] ||= []) << pid.to_i } }
      known
    end

    def wait_for_end(server, names, patience: 60)
      late = lambda do
        missing = names - ended(server).keys
        "the end of #{missing.size}, such as #{began(server).slice(*missing.first(5))}\n" \
          "#{@redis.call("KEYS", "pando:*")}\n#{server.output[-8000..] || server.output}"
      end
      wait_until(timeout: patience, message: late) do
        ended(server).size >= names.size && (names - ended(server).keys).empty?
      end
    end

    # @return [Integer] pid of the node that has started it last
    def wait_for_begin(server, name, times = 1)
      wait_until(message: -> { "the beginning of #{name}\n#{server.output}" }) do
        pids = began(server).fetch(name, [])
        pids.last if pids.size >= times
      end
    end

    def let_go(server, file = "go") = server.write(file, "")

    # @return [Array<Integer>] pids of the nodes that Sidekiq knows
    def known_pids = @redis.call("SMEMBERS", "processes").map { |identity| identity.split(":")[1].to_i }.sort

    def node_pids(server) = server.nodes("sidekiq").reject(&:zombie?).map(&:pid).sort
  end
end
