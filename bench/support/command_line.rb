# frozen_string_literal: true

require "optparse"

module Bench
  # The common part of the benchmarks' command lines. A class that includes this module defines `program` and `parser`,
  # and sets its defaults before {#read}.
  module CommandLine
    SECONDS = /\A\d{1,2}(?:\.\d{1,3})?\z/

    def check? = @check || false

    private

    def read(arguments)
      parser.parse!(arguments)
      usage("unexpected: #{arguments.join(" ")}") unless arguments.empty?
    rescue OptionParser::ParseError => e
      usage(e.message)
    end

    # Options with one whole number each.
    #
    # @param meanings [Hash{Symbol => String}]
    # @param pattern [Regexp] of the allowed values
    def numbers_of(options, meanings, pattern)
      meanings.each do |name, meaning|
        default = instance_variable_get(:"@#{name}")
        options.on("--#{name.to_s.tr("_", "-")} N", pattern, "#{meaning} (default #{default})") do |number|
          instance_variable_set(:"@#{name}", number.to_i)
        end
      end
    end

    # The contestants.
    #
    # @param all [Array<String>] known names
    def servers_of(options, all)
      options.on("--servers LIST", Array, "of #{all.join(",")} (default #{@servers.join(",")})") do |names|
        @servers = known(names, all)
      end
    end

    # The parts of the program to run.
    #
    # @param all [Array<String>] known names
    def sections_of(options, all)
      options.on("--sections LIST", Array, "of #{all.join(",")} (default all)") do |list|
        @sections = known(list, all)
      end
    end

    # The parser of a program of sections, see {Sections}.
    #
    # @param all [Array<String>] its sections
    # @param numbers [Hash{Symbol => String}] @param pattern [Regexp] as for {#numbers_of}
    def parser_of_sections(all, numbers, pattern)
      OptionParser.new("Usage: #{program} [options]") do |options|
        sections_of(options, all)
        numbers_of(options, numbers, pattern)
        ending(options, "limit")
      end
    end

    # The Rubies to measure, one after the other, and the seconds of each measurement.
    def rubies_of(options)
      options.on("--rubies LIST", Array, "paths; this: the one at hand (default: this and one with YJIT)") do |list|
        @rubies = list.map { |path| path == "this" ? Gem.ruby : path }
      end
      options.on("--yjit", "let those that can compile") { @yjit = true }
      options.on("--seconds N", SECONDS, "each measurement (default #{@seconds})") { |seconds| @seconds = seconds }
    end

    # @param standard [String] the word in docs/benchmarks.md for the figures that --check requires
    def ending(options, standard)
      figures(options, standard)
      options.on("--ruby PATH", "to run on; this: the one at hand (default: one with YJIT)")
    end

    # @param standard [String] as for {#ending}
    def figures(options, standard)
      options.on("--json FILE", "all figures") { |path| @json = File.expand_path(path) }
      options.on("--check", "exit 1 if Pando misses a #{standard} of docs/benchmarks.md") { @check = true }
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
