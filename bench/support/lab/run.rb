# frozen_string_literal: true

require "fileutils"
require "tmpdir"
require "support/lab/client"
require "support/lab/group"
require "support/lab/journal"
require "support/lab/servers"
require "support/lab/slices"
require "support/lab/summary"
require "support/lab/watch"

module Bench
  module Lab
    # Takes one server through one load, see {Slices}. Then it kills some workers with SIGKILL, as the kernel does when
    # memory runs out, each after the previous one has been replaced and the replacement has served requests.
    class Run
      class Failed < StandardError; end

      METERED = File.expand_path("metered.ru", __dir__)
      REPLACED_WITHIN = 30 # seconds
      AFTER_A_KILL = 200 # requests per worker

      # @param variant [Variant]
      # @param options [Options]
      # @param pause [Proc] called between two slices for another server's turn; returns true to end the load
      def initialize(variant, options, app:, pause: -> { false })
        @variant = variant
        @options = options
        @app = app
        @pause = pause
      end

      # @return [Hash] the figures
      def call
        Dir.mktmpdir("pando-lab") do |folder|
          @folder = folder
          @group = Group.make || Ledger.new
          serve
          summary
        ensure
          @group&.release
        end
      end

      private

      def serve
        @server = build
        @server.run do
          @client = Client.new(@server.port, @app.traffic(@variant.traffic_seed), clients: @options.clients)
          @watch = Watch.new(@server, @group)
          @slices = Slices.new(@client, watch: @watch, group: @group, size: @options.slice)
          @watch.during { @slices.run(@options.total, @pause) }
          @allocator = allocator
          kill_some
        end
      rescue Slices::Gone, Client::Stuck => e
        raise Failed, "#{e.message}\n#{output}"
      end

      def build
        Servers.build(@variant.server, app: METERED, folder: @folder, workers: @options.workers, prefix: @group.prefix,
                                       bundle: @app.bundle, pando: @variant.pando(@options), environment: environment)
      end

      def environment
        FileUtils.mkdir_p(journal)
        @app.bundle.environment.merge(@app.environment(@folder), @variant.environment,
                                      "LAB_JOURNAL" => journal, "RACK_ENV" => "production")
      end

      def journal = File.join(@folder, "journal")

      # The allocator of the workers, from their mappings.
      def allocator
        File.read("/proc/#{@watch.workers.first}/maps").include?("jemalloc") ? "jemalloc" : "glibc"
      rescue SystemCallError
        nil
      end

      def kill_some
        @measured = @client.sent.size
        @after = Watch.new(@server, @group)
        @replacements = Array.new(@options.kills) do
          before = settled
          Process.kill(:KILL, before.sample(random: Random.new(@options.seed)))
          fresh = settled - before
          @client.run(AFTER_A_KILL * @options.workers)
          fresh
        end.flatten
      end

      # @return [Array<Integer>] pids of the workers, once their number is right and stable
      def settled
        deadline = now + REPLACED_WITHIN
        loop do
          before = @after.look.workers
          sleep 1
          return before if @after.look.workers == before && before.size == @options.workers
          raise Failed, "no #{@options.workers} workers within #{REPLACED_WITHIN} s\n#{output}" if now > deadline
        end
      end

      def output = @server.output.lines.last(20).join

      def summary
        Summary.new(samples: @slices.samples, idle: @slices.idle, sent: @client.sent, failures: @client.failures,
                    journal: Journal.new(journal), watch: @watch, measured: @measured, replacements: @replacements,
                    workers: @options.workers).to_h
               .merge(allocator_found: @allocator, events: events)
      end

      # The server's own messages about its reforks.
      def events = @server.output.lines.grep(/refork|discarded|killed|suspended/i).first(60).map(&:chomp)

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
