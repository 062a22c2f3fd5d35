# frozen_string_literal: true

require "support/peer"

module Bench
  module Servers
    # Puma with one thread per worker. It loads the app before it forks the workers.
    class Puma < Peer
      def label = "Puma #{processes}x#{threads}"
      def threads = 1
      def capacity = processes * threads

      def command
        [*executable("puma"), "--preload", "-w", processes.to_s, "-t", "#{threads}:#{threads}",
         "-e", "production", "-b", "tcp://127.0.0.1:#{port}", @app]
      end

      def worker_title = /\Apuma: cluster worker \d+/
    end

    # The same with half as many workers and two threads in each.
    class PumaThreads < Puma
      def processes = [@workers / 2, 1].max
      def threads = 2
    end
  end
end
