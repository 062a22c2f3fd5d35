# frozen_string_literal: true

require "fileutils"
require "tmpdir"
require "support/lab/figures"
require "support/lab/group"
require "support/lab/watch"
require "support/memory"
require "support/swarm/contestants"
require "support/swarm/jobs"
require "support/swarm/ledger"
require "support/swarm/summary"

module Bench
  module Swarm
    # Takes one contestant through the whole load: slices of jobs, and between two of them, with no job under way, a
    # reading of memory and CPU time. Then, with jobs always waiting, it kills nodes with SIGKILL, as the kernel does
    # when memory runs out. It kills the next node when the replacement of the previous one is warm.
    class Run
      class Failed < StandardError; end

      DONE_WITHIN = 300 # seconds per slice
      REPLACED_WITHIN = 300 # seconds, including the first jobs of a cold node
      AFTER_A_KILL = 120 # jobs of the replacement
      POLL = 0.01

      # @param options [Options]
      # @param app [Lab::Apps::Rails]
      # @param bundle [Bundle]
      def initialize(name, options, app:, bundle:)
        @name = name
        @options = options
        @app = app
        @bundle = bundle
        @jobs = Jobs.new(options.seed)
        @samples = []
        @sent = 0
      end

      # @return [Hash] the figures
      def call
        Dir.mktmpdir("pando-swarm") do |folder|
          @folder = folder
          @broker = Contestants.broker(@name).new(folder, @jobs, @options.nodes * @options.threads)
          @ledger = Ledger.new(pipe)
          @group = Lab::Group.make || Lab::Ledger.new
          serve
          summary
        ensure
          @group&.release
          @broker&.stop
          @ledger&.close
        end
      end

      private

      def serve
        @contestant = build
        @contestant.run do
          @watch = Lab::Watch.new(@contestant, @group)
          @watch.during { load }
          @reforks = @watch.reforks
          @kills = Array.new(@options.kills) { replace }
        end
      end

      def build
        Contestants.build(@name, folder: @folder, workers: @options.nodes, threads: @options.threads,
                                 settings: @options.settings, prefix: @group.prefix, environment: environment)
      end

      def environment
        @bundle.environment.merge(@app.environment(@folder)).then do |variables|
          variables.merge("SWARM_APP" => File.dirname(variables.fetch("LAB_APP")), "SWARM_PIPE" => pipe,
                          "SWARM_NODES" => @options.nodes.to_s, "SWARM_THREADS" => @options.threads.to_s,
                          "RUBY_YJIT_ENABLE" => "1", "PANDO_TIME_SCALE" => @options.time_scale.to_s,
                          **@broker.environment)
        end
      end

      def pipe = File.join(@folder, "jobs.pipe")

      def load
        sample
        until (left = @options.total - @sent).zero?
          send_jobs([@options.slice, left].min)
          await("end of #{@sent} jobs") { @ledger.size >= @sent }
          sample
        end
      end

      def send_jobs(count)
        @broker.give(count)
        @sent += count
      end

      def sample
        sight = @watch.look
        memory = Memory.of(sight.workers + sight.others, sight.workers)
        @samples << { jobs: @ledger.size, at: now, cpu: @group.cpu, generation: sight.generations.max, **memory.to_h }
      end

      # The newest replacement is killed next, so that the other nodes stay for comparison.
      # @return [Hash] pid: of the new node, at: when the old one was killed
      def replace
        before = settled
        Process.kill(:KILL, before.include?(@fresh) ? @fresh : before.first)
        killed_at = now
        fresh = nil
        await("new node", REPLACED_WITHIN) do
          feed
          others = @watch.look.workers - before # for a moment, a mold still has the title of the node that forked it
          fresh = others.first unless others.include?(fresh)
          fresh && done_by(fresh) >= AFTER_A_KILL
        end
        { pid: @fresh = fresh, at: killed_at }
      end

      # Makes sure that jobs are always waiting.
      def feed
        send_jobs(@options.slice) if @broker.waiting(@sent - @ledger.size) < @options.slice
      end

      def done_by(pid) = @ledger.done.last(@options.slice * 20).count { |done| done.pid == pid }

      # @return [Array<Integer>] pids of the nodes, once their number is right and stable
      def settled
        same_since = last = nil
        await("#{@options.nodes} nodes", REPLACED_WITHIN) do
          feed
          nodes = @watch.look.workers
          same_since = now unless nodes == last
          last = nodes
          nodes.size == @options.nodes && now - same_since >= 1
        end
        last
      end

      def await(what, seconds = DONE_WITHIN)
        deadline = now + seconds
        until yield
          raise Failed, "no #{what} within #{seconds} s, #{@ledger.size} done\n#{output}" if now > deadline

          sleep POLL
        end
      end

      def output = @contestant.output.lines.last(30).join

      def summary
        Summary.new(samples: @samples, done: @ledger.done, total: @options.total, kills: @kills,
                    nodes: @options.nodes).to_h
               .merge(reforks: @reforks, events: events)
      end

      # The contestant's own messages about its reforks.
      def events = @contestant.output.lines.grep(/refork|discarded|killed|suspended|rror/i).first(60).map(&:chomp)

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
