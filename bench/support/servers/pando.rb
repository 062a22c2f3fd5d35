# frozen_string_literal: true

require "support/server"

module Bench
  module Servers
    # This checkout, unless another one is named. If reforking is on, a signal triggers it, so that it happens at the
    # same moment as Pitchfork's. There is no canary, because Pitchfork has none.
    class Pando < Server
      ROOT = File.expand_path("../../..", __dir__)
      CONNECTIONS = 20_000

      # @param reactor [Boolean, nil] nil: Pando's default
      # @param root [String] of a checkout
      # @param extra [String, nil] a file with settings that the app needs
      def initialize(refork: "manual", reactor: nil, root: ROOT, extra: nil, **options)
        super(**options)
        @refork = refork
        @reactor = reactor
        @root = root
        @extra = extra
      end

      def label = @reactor == false ? "Pando, direct" : "Pando"

      def command
        config = File.join(@folder, "pando.rb")
        File.write(config, settings.map { |name, value| "#{name} #{value}\n" }.join + extra)
        [Gem.ruby, *program, "serve", @app, "-c", config, "-l", "127.0.0.1:#{port}", "-w", @workers.to_s,
         "--refork", @refork, "-e", "production"]
      end

      def worker_title = /\Apando worker \d+ gen (?<generation>\d+)\b(?! booting| draining)/
      def generation_title = /\Apando (?:mold|worker \d+) gen (?<generation>\d+)/

      private

      def program = ["-I", File.join(@root, "lib"), File.join(@root, "exe/pando")]
      def extra = @extra && File.exist?(@extra) ? File.read(@extra) : ""

      def settings
        { "reactor" => @reactor, "max_connections" => CONNECTIONS, "rollout canary:" => false }
          .compact.select { |name, _value| known?(name) }
      end

      def known?(setting)
        @known ||= IO.popen([@environment, Gem.ruby, *program, "config"], chdir: @folder, &:read)
        @known.match?(/^#{setting} /)
      end
    end

    # The same in direct mode: workers accept connections themselves.
    class PandoDirect < Pando
      def initialize(**options) = super(reactor: false, **options)
    end
  end
end
