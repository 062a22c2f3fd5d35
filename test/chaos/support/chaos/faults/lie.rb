# frozen_string_literal: true

require "securerandom"
require "socket"

module Chaos
  module Faults
    # A process sends a message on its link that is wrong or malformed.
    class Lie < Fault
      KINDS = ["ready twice", "an order", "a fork that failed", "leaving", "a last word", "a step", "garbage",
               "an empty record", "a huge record", "a flood", "descriptors", "silence"].freeze

      def self.plan(random) = { "lie" => KINDS.sample(random: random), "pick" => random.rand.round(3) }
    end

    # The process that forks next, usually a mold.
    class LyingMold < Lie
      named "lying mold", weight: 6, evidence: /\A(link\.malformed|mold\.(lost|killed))\z/

      def inject
        File.write(stage.path("lie"), plan["lie"])
        worker = victim(worker_role) and signal(worker.pid, "KILL")
        scene.wait(3) { !File.exist?(stage.path("lie")) }
      end
    end

    # A worker in the middle of one of our requests.
    class LyingWorker < Lie
      named "lying worker", weight: 6, evidence: /\A(link\.malformed|worker\.(lost|killed|exited))\z/

      def inject
        socket = UNIXSocket.new(stage.socket)
        path = "/lie/l#{SecureRandom.hex(8)}?#{plan["lie"].gsub(" ", "%20")}"
        socket.write("POST #{path} HTTP/1.1\r\nHost: chaos\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        socket.wait_readable(3) # there may be no answer
        true
      rescue SystemCallError
        false
      ensure
        socket&.close
      end
    end
  end
end
