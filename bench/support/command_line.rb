# frozen_string_literal: true

require "optparse"

module Bench
  # What the command lines of the benchmarks have in common. A class that includes
  # this answers `program` and `parser`, and sets its defaults before {#read}.
  module CommandLine
    def check? = @check || false

    private

    def read(arguments)
      parser.parse!(arguments)
      usage("unexpected: #{arguments.join(" ")}") unless arguments.empty?
    rescue OptionParser::ParseError => e
      usage(e.message)
    end

    # Options that set a whole number each.
    #
    # @param meanings [Hash{Symbol => String}]
    # @param pattern [Regexp] of what is allowed
    def numbers_of(options, meanings, pattern)
      meanings.each do |name, meaning|
        default = instance_variable_get(:"@#{name}")
        options.on("--#{name} N", pattern, "#{meaning} (default #{default})") do |number|
          instance_variable_set(:"@#{name}", number.to_i)
        end
      end
    end

    # @param standard [String] of docs/benchmarks.md that --check holds Pando to
    def ending(options, standard)
      options.on("--json FILE", "all figures") { |path| @json = File.expand_path(path) }
      options.on("--check", "exit 1 if Pando misses a #{standard} of docs/benchmarks.md") { @check = true }
      options.on("--ruby PATH", "to run on; this: the one at hand (default: one with YJIT)")
    end

    def known(names, all)
      unknown = names - all
      return names if unknown.empty?

      raise OptionParser::InvalidArgument, "#{unknown.first} (known: #{all.join(", ")})"
    end

    def usage(message)
      warn "#{program}: #{message}", parser.help
      exit 2
    end
  end
end
