# frozen_string_literal: true

require "pando/compat/names"
require "pando/compat/solid_queue"
require "pando/events"

module Pando
  module Compat
    # Reports settings that were meant for another server and have no effect on Pando, once at each start, in the
    # monitor. It looks at the environment and at the text of config/puma.rb, which it neither runs nor parses.
    #
    # @api private
    class Notices
      PUMA = "config/puma.rb"
      INIT = "pando init writes config/pando.rb from it"
      # Lines that are reported one by one; the rest only as a number.
      MOST = 5

      # The setting or hook that a line calls.
      CALL = /\A\s*([a-z]\w*!?)(?![\w!])(?!\s*(?:\|\|)?=)/
      ASSIGNMENT = /\A\s*([a-z_]\w*)\s*(?:\|\|)?=[^=~]/
      # Settings and hooks that Puma and Pando share.
      SHARED = %w[before_fork early_hints environment pidfile rackup workers].freeze
      # Parts of a line that ask for what Pando does by itself: it follows these variables, has a worker for each CPU,
      # and reforks.
      FOLLOWED = Regexp.union(/["'](?:PORT|PIDFILE|RAILS_ENV|RACK_ENV|WEB_CONCURRENCY)["']/,
                              /["'](?:RAILS_)?M(?:AX|IN)_THREADS["']/, /["']#{SolidQueue::VARIABLE}["']/,
                              /nprocessors|processor_count\b/, /\bplugin[ (]+["':]tmp_restart/,
                              /\A\s*fork_worker\s*\z/, /\A\s*worker_timeout\b/)
      # Hints for what Pando lacks, although they begin like those for what it need not be told.
      MISSING = [Names::SERVICE_MANAGER, Names::ONE_THREAD].freeze
      private_constant :INIT, :MOST, :CALL, :ASSIGNMENT, :SHARED, :FOLLOWED, :MISSING

      # @param config [Config]
      # @param env [Hash{String => String}]
      def initialize(config, env = ENV)
        @config = config
        @env = env
      end

      # Emits an event for each setting.
      #
      # @return [void]
      def tell
        ignored.each do |name, reason, advice|
          Events.emit("setting.ignored", name: name, reason: reason, advice: advice)
        end
        return unless (node = @config.nodes.find { |kind| kind.source == SolidQueue::VARIABLE })

        Events.emit("setting.followed", name: SolidQueue::VARIABLE,
                                        reason: "node #{node.name} runs config/queue.yml and config/recurring.yml")
      end

      # @return [Array<Array(String, String, String)>] name, reason and advice
      def ignored = [*puma_file, solid_queue, threads].compact

      private

      def puma_file
        return if @config.config_file || !File.file?(path = File.join(@config.directory, PUMA))

        lines = untranslated(File.read(path, encoding: Encoding::UTF_8).scrub)
        [*lines.first(MOST).map { |line| told(*line) }, *rest(lines.drop(MOST))]
      rescue SystemCallError
        [[PUMA, "Pando does not read it", INIT]]
      end

      # @return [Array<Array(Integer, String, String)>] number, text and hint of each line whose setting has no effect
      def untranslated(source)
        followed = FOLLOWED
        program = source.lines(chomp: true).take_while { |line| line != "__END__" }
        program.each.with_index(1).filter_map do |line, number|
          variable = line[ASSIGNMENT, 1]
          followed = Regexp.union(followed, /\b#{variable}\b/) if variable && line.match?(followed)
          name = line[CALL, 1]
          [number, line.strip, Names.hint(name)] if name && matters?(name, line) && !line.match?(followed)
        end
      end

      def matters?(name, line)
        return @config.listen.none? { |listen| listen.tcp? && listen.port.to_s == line[/\d+/] } if name == "port"

        hint = Names.hint(name) or return SHARED.include?(name)
        !hint.start_with?("Leave it out") || MISSING.include?(hint)
      end

      def told(number, text, hint)
        ["#{PUMA}:#{number}", "Pando does not read #{text}", [hint, INIT].compact.join(" ")]
      end

      def rest(lines)
        return [] if lines.empty?

        [[PUMA, "Pando does not read lines #{lines.map(&:first).join(", ")} either", INIT]]
      end

      def solid_queue
        return unless SolidQueue.wanted?(@env) && @config.workers.positive? && jobs.none?

        [SolidQueue::VARIABLE, "no jobs run: #{SolidQueue.obstacle(@config.directory, @env)}",
         "run bundle install, or unset it"]
      end

      def jobs = @config.nodes.select { |kind| kind.runner == :solid_queue }

      def threads
        name = %w[RAILS_MAX_THREADS MAX_THREADS].find { |one| @env.fetch(one, "").to_i > 1 } or return
        return if @config.workers.zero?

        [name, "a worker serves one request at a time",
         "WEB_CONCURRENCY or workers says how many requests are served at once"]
      end
    end
  end
end
