# frozen_string_literal: true

require "support/peer"

module Bench
  module Servers
    # A server in C, with one thread per worker for the app and its own threads.
    class Agoo < Peer
      def label = "Agoo"

      def command
        [*executable("agoo"), "-s", "-t", "1", "-w", @workers.to_s, "-d", @folder,
         "-b", "http://127.0.0.1:#{port}", @app]
      end
    end
  end
end
