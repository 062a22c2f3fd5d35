# frozen_string_literal: true

require "support/server"

module Bench
  module Servers
    # This checkout. A refork is asked for by a signal, so that it comes at the same moment as Pitchfork's.
    class Pando < Server
      ROOT = File.expand_path("../../..", __dir__)

      def label = "Pando"

      def command
        [Gem.ruby, "-I", File.join(ROOT, "lib"), File.join(ROOT, "exe/pando"), "serve", @app,
         "-l", "127.0.0.1:#{port}", "-w", @workers.to_s, "--refork", "manual", "-e", "production"]
      end

      def worker_title = /\Apando worker \d+ gen (?<generation>\d+)/
      def generation_title = /\Apando (?:mold|worker \d+) gen (?<generation>\d+)/
    end
  end
end
