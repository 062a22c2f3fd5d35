# frozen_string_literal: true

# The baseline for Pando's nodes: a parent that has loaded the app and forks processes, each of which runs Sidekiq
# through its embedding API. It replaces processes that die, and compacts its heap before it forks.
require_relative "boot"
require "sidekiq/embedded"

module Bench
  module Swarm
    # The parent.
    class Preloaded
      def initialize(count, threads)
        @count = count
        @threads = threads
        @children = {} # pid => number
      end

      def run
        Rails.application.eager_load!
        ActiveRecord::Base.connection_handler.clear_all_connections!
        Process.respond_to?(:warmup) ? Process.warmup : GC.start && GC.compact
        %w[TERM INT].each { |name| trap(name) { stop } }
        @count.times { |number| start(number) }
        Process.setproctitle("preloaded parent")
        watch
      end

      private

      def start(number)
        @children[fork { work(number) }] = number
      end

      def stop
        @stopping = true
        @children.each_key { |pid| Process.kill(:TERM, pid) }
      rescue Errno::ESRCH
        nil # the process has ended
      end

      def watch
        until @children.empty?
          number = @children.delete(Process.wait)
          start(number) if number && !@stopping
        end
      end

      def work(number)
        ended, signal = IO.pipe
        %w[TERM INT].each { |name| trap(name) { signal.write(".") } }
        sidekiq = Sidekiq.configure_embed do |config|
          config.concurrency = @threads
          config.queues = %w[default]
        end
        sidekiq.run
        Process.setproctitle("preloaded node #{number}")
        ended.read(1)
        sidekiq.stop
      end
    end
  end
end

Bench::Swarm::Preloaded.new(Integer(ARGV[0]), Integer(ARGV[1])).run
