# frozen_string_literal: true

require "pando/compat/names"
require "pando/compat/solid_queue"
require "pando/events"

module Pando
  module Compat
    # The lines of an untranslated Puma config file that call a setting without effect on Pando. Each line is judged by
    # itself, and the file is neither run nor parsed. Two kinds of line are judged together with those that begin the
    # blocks around them: `plugin :solid_queue`, because in Rails' own file its branch may depend on
    # SOLID_QUEUE_IN_PUMA, and the call of a library, because in a hook it makes no settings.
    #
    # Notices uses it.
    class UnreadFile
      # A setting or hook and its arguments, without a condition or a comment behind them.
      CALL = /\A\s*([a-z]\w*!?)(?![\w!?:.&\[])(?!\s*(?:\|\|)?=)(.*?)(?:\s(?:if|unless|#)\s.*)?\z/
      ASSIGNMENT = /\A\s*([a-z_]\w*)\s*(?:\|\|)?=(?![=~])\s*(.+)/
      # Arguments that ask for what Pando does by itself: it follows these variables, has a worker for each CPU, and
      # reforks.
      THREADS = /["']RAILS_MAX_THREADS["']|\A[ (]*[01](?:\s*,\s*[01])?\s*\)?\z/
      # A variable that Pando does not read.
      MAX_THREADS = /["']MAX_THREADS["']/
      PIDFILE = /["']PIDFILE["']/
      FOLLOWED = { "fork_worker" => /\A\s*\z/, "max_threads" => THREADS, "min_threads" => THREADS,
                   "threads" => THREADS, "pid" => PIDFILE, "pidfile" => PIDFILE,
                   "plugin" => /\A[ (]*["':]tmp_restart/, "rackup" => /\A[ (]*DefaultRackup\b/,
                   "worker_timeout" => //,
                   "workers" => /nprocessors|processor_count\b|\A[ (]*["':]auto\b/ }.freeze
      PLUGIN = /\A[ (]*["':]([a-z]\w*)/
      # A value whose default is in the lines that follow, and the variables that may make it needless.
      OPEN = /(?:\{|\bdo)\s*\z/
      VARIABLES = %w[RAILS_MAX_THREADS PIDFILE].freeze
      BLANK = /\A\s*(?:#.*)?\z/
      COMMENT = /(?:\A|\s)#.*/
      IF_ASKED = /\bif\s+(?:#{SolidQueue::ASKED})\s*\z/
      # Settings that matter only where several requests are served at once.
      NOT_IN_DEVELOPMENT = %w[workers threads max_threads min_threads].freeze
      # Settings that Pando has too, by Puma's name.
      SETTINGS = { "bind" => :listen, "early_hints" => :early_hints, "environment" => :environment, "pid" => :pidfile,
                   "max_threads" => :threads, "pidfile" => :pidfile, "port" => :listen, "rackup" => :rackup,
                   "threads" => :threads, "workers" => :workers }.freeze
      # Further settings and hooks of Puma, for which there is no hint.
      OTHERS = %w[after_worker_fork before_fork directory idle_timeout].freeze
      # A library that configures Puma: `GovukPuma.configure_rails(self)`.
      HANDED_OVER = /\A[^#"']*\b[A-Z]\w*\.\w+[!?]?[( ](?:[^#]*[(, ])?self\b(?!\.)/
      HANDED_OVER_HINT = "Write the settings that it makes."
      # The name of a hook. In its block `self` makes no settings.
      HOOK = /\A(?:on|before|after)_/
      # A hint for what Pando lacks, although it begins like those for what it need not be told.
      MISSING = Names::SERVICE_MANAGER
      private_constant(*constants(false))

      def initialize(source, config, env)
        @source = source
        @config = config
        @env = env
      end

      # @return [Array<Array(Integer, String, String)>] number, text and hint of each such line
      def lines
        variables = {}
        program = @source.lines(chomp: true).take_while { |line| line != "__END__" }
        program.filter_map.with_index do |line, row|
          variable, value = ASSIGNMENT.match(line)&.captures
          variables[variable] = expand(value, variables) if variable
          name, arguments = CALL.match(line)&.captures
          missed = missed?(name, expand(arguments, variables)) && !asks_for_jobs?(name, arguments, program, row)
          handed_over = handed_over?(program, row)
          [row + 1, line.strip, handed_over ? HANDED_OVER_HINT : hint(name, arguments)] if missed || handed_over
        end
      end

      # @return [Integer, nil] number of the first line by which Puma runs the jobs here
      def jobs_line = lines.find { |_, text| text.match?(SolidQueue::PLUGIN) }&.first

      private

      def expand(text, variables) = text.to_s.gsub(/\b[a-z_]\w*\b/) { |word| variables.fetch(word, word) }

      def hint(name, arguments)
        plugin = arguments[PLUGIN, 1] if name == "plugin"
        plugin ? Names.plugin(plugin) : Names.hint(name)
      end

      def missed?(name, arguments)
        hint = Names.hint(name)
        return false unless hint || SETTINGS.key?(name) || OTHERS.include?(name)
        return false if hint&.start_with?("Leave it out") && hint != MISSING

        !(followed?(name, arguments) || needless?(name) || had?(name, arguments))
      end

      def solid_queue?(arguments) = arguments[PLUGIN, 1] == "solid_queue"

      def followed?(name, arguments) = FOLLOWED[name]&.match?(arguments) && !own_default?(arguments)

      # Rails writes its default in the same line. A longer one is the application's own, and Pando does not see it.
      def own_default?(arguments)
        OPEN.match?(arguments) && VARIABLES.any? { |name| arguments.include?(name) && !@env.key?(name) }
      end

      # Whether it does not matter here, or a flag is given, which comes before the file in Puma, too.
      def needless?(name)
        return true if NOT_IN_DEVELOPMENT.include?(name) && %w[development test].include?(@config.environment)

        SETTINGS.key?(name) && @config.source(SETTINGS.fetch(name)).match?(/\A-|\Acommand line\z/)
      end

      def had?(name, arguments)
        case name
        when "port" then port?(arguments)
        when "bind" then bound?(arguments)
        when "workers" then workers?(arguments)
        when "environment" then environment?(arguments)
        when /threads/ then threads?(arguments)
        when "rackup", "pidfile", "pid" then path(arguments) == @config.public_send(SETTINGS.fetch(name))
        when "plugin" then solid_queue?(arguments) && jobs?
        end
      end

      def port?(arguments)
        port = port(arguments) or return /["']PORT["']/.match?(arguments)
        host = arguments[/,\s*["']([^"']+)["']\s*\)?\s*\z/, 1]
        return listens_on?("#{host}:#{port}") if host

        @config.listen.any? { |listen| listen.tcp? && listen.port == port }
      end

      # @return [Integer, nil] nil: it cannot be determined
      def port(text)
        return @config.listen.first.port if /["']PORT["']/.match?(text) && !@config.default?(:listen)

        text[/\b\d+\b/]&.to_i
      end

      def bound?(arguments)
        address = arguments.sub(/\#{(.*)}/) { port(Regexp.last_match(1)) }[/["']([^"'?]*)/, 1]
        !address.nil? && listens_on?(address)
      end

      def listens_on?(address)
        @config.listen.include?(Config::Listen.parse(address).in(@config.directory))
      rescue ArgumentError
        false
      end

      # Rails' own line has one as the default, and a condition by which it then asks for nothing.
      def workers?(arguments)
        number = arguments[/\b\d+\b/]
        return true if number.to_i == @config.workers

        /["']WEB_CONCURRENCY["']/.match?(arguments) && ([nil, "1"].include?(number) || !@config.default?(:workers))
      end

      # A variable that is set comes before the default behind it.
      def environment?(arguments)
        return true if Names.environment_followed?(arguments)

        [@config.environment, @config.source(:environment)].include?(arguments[/\b(?!ENV\b|fetch\b)\w+/])
      end

      def threads?(arguments)
        return arguments[/(\d+)\s*\)?\s*\z/, 1].to_i == @config.threads unless MAX_THREADS.match?(arguments)
        return true if Notices.max_threads?(@config, @env)

        number = @env["MAX_THREADS"] || arguments.rpartition(MAX_THREADS).last[/\d+/]
        number.nil? || number.to_i == @config.threads
      end

      def path(arguments)
        name = arguments[/["']([^"']+)["']/, 1]
        name && File.expand_path(name, @config.directory)
      end

      def jobs? = SolidQueue.wanted?(@env) || @config.nodes.any? { |kind| kind.runner == :solid_queue }

      # Whether the variable decides about this `plugin :solid_queue` in Pando too: it is set, or the line asks for
      # nothing without it.
      def asks_for_jobs?(name, arguments, program, row)
        return false unless name == "plugin" && solid_queue?(arguments)

        lines = nesting(program, row).first(2).map { |line| line.sub(COMMENT, "") }
        return true if lines.any?(IF_ASKED)

        @env.key?(SolidQueue::VARIABLE) && lines.any? { |line| line.include?(SolidQueue::VARIABLE) }
      end

      def handed_over?(program, row)
        HANDED_OVER.match?(program[row]) && nesting(program, row).none? { |line| line[CALL, 1]&.match?(HOOK) }
      end

      # @return [Array<String>] this line and those that begin the blocks and branches around it, the innermost first,
      #   as far as the indentation tells
      def nesting(program, row)
        above = program.first(row).grep_v(BLANK).reverse
        above.each_with_object([program[row]]) { |line, found| found << line if depth(line) < depth(found.last) }
      end

      def depth(line) = line[/\A\s*/].size
    end

    # Reports settings that were meant for another server and have no effect on Pando, once at each start, in the
    # monitor. It looks at the environment and at the text of config/puma.rb.
    class Notices
      PUMA = "config/puma.rb"
      INIT = "pando init writes config/pando.rb from it"
      # Lines that are reported one by one; the rest only as a number.
      MOST = 5
      private_constant :INIT, :MOST

      # @return [Boolean] whether MAX_THREADS asks for threads, and the workers have one by default
      def self.max_threads?(config, env)
        env.fetch("MAX_THREADS", "").to_i > 1 && config.default?(:threads) && config.workers.positive?
      end

      def initialize(config, env = ENV)
        @config = config
        @env = env
      end

      # Emits an event for each setting.
      def tell
        ignored.each do |name, reason, advice|
          Events.emit("setting.ignored", name: name, reason: reason, advice: advice)
        end
        return unless (node = @config.nodes.find { |kind| kind.source == SolidQueue::VARIABLE })

        Events.emit("setting.followed", name: SolidQueue::VARIABLE,
                                        reason: "node #{node.name} runs config/queue.yml and config/recurring.yml")
      end

      # @return [Array<Array(String, String, String)>] name, reason and advice
      def ignored = [*puma_file, plugin, solid_queue, fork_per_job, max_threads, rails_max_threads].compact

      private

      def puma_file
        return if @config.config_file || !File.file?(path = File.join(@config.directory, PUMA))

        lines = UnreadFile.new(read(path), @config, @env).lines
        [*lines.first(MOST).map { |line| told(*line) }, *rest(lines.drop(MOST))]
      rescue SystemCallError
        [[PUMA, "Pando does not read it", INIT]]
      end

      def read(path) = File.read(path, encoding: Encoding::UTF_8).scrub

      # The jobs of an app whose config file was translated.
      def plugin
        return if @env.key?(SolidQueue::VARIABLE) || node_in_file? || @config.workers.zero? || jobs.any? ||
                  !SolidQueue.possible?(@config.directory, @env)

        line = UnreadFile.new(read(File.join(@config.directory, PUMA)), @config, @env).jobs_line or return
        ["#{PUMA}:#{line}", "#{file} has no node for plugin :solid_queue, so Pando runs no jobs",
         "write #{SolidQueue::LINE}; if bin/jobs runs them elsewhere, remove the line, or set " \
         "#{SolidQueue::VARIABLE}=false"]
      rescue SystemCallError
        nil
      end

      # A condition may keep the node away, or `pando swarm` runs it. Without a config file, puma_file has the line.
      def node_in_file?
        return true unless @config.config_file

        files = [@config.config_file, File.join(@config.directory, Config::Loader::SWARM_FILE)]
        files.any? { |path| File.file?(path) && read(path).match?(SolidQueue::IN_FILE) }
      end

      def file = @config.short(@config.config_file)

      def told(number, text, hint)
        advice = [hint, *(INIT unless Names::PLUGINS.value?(hint) || hint == Names::OTHER_PLUGIN)].compact.join(" ")
        ["#{PUMA}:#{number}", "Pando does not read #{text}", advice]
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

      # Resque follows it.
      def fork_per_job
        return unless @env["FORK_PER_JOB"] == "false" && @config.nodes.any? { |kind| kind.runner == :resque }

        ["FORK_PER_JOB", "a node of Resque runs each job in a process of its own", "unset it (docs/swarm/resque.md)"]
      end

      def jobs = @config.nodes.select { |kind| kind.runner == :solid_queue }

      # The variable is meant for other libraries, too.
      def rails_max_threads
        name = Config::Threads::VARIABLE
        return unless @config.source(:threads) == name && @config.reactor && @config.threads != :auto

        wanted = @env.fetch(name).to_i
        threads = @config.threads
        [name, *too_many(wanted, threads)] unless wanted == threads
      end

      # @return [Array(String, String)] reason and advice
      def too_many(wanted, threads)
        range = Config::Settings[:threads].type.range
        unless range.cover?(wanted)
          return ["a worker has from #{range.begin} to #{range.end} threads, and not #{wanted}: it has #{threads}",
                  "write threads #{threads} in config/pando.rb"]
        end

        ["#{wanted} threads in each worker are more than the #{Config::Threads::LIMIT} of a server: a worker has " \
         "#{threads}", "write threads #{threads} in config/pando.rb, or start fewer workers"]
      end

      def max_threads
        return unless Notices.max_threads?(@config, @env)

        ["MAX_THREADS", "Pando does not read it",
         "set RAILS_MAX_THREADS, or write threads ENV.fetch(\"MAX_THREADS\", 1)"]
      end
    end
  end
end
