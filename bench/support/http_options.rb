# frozen_string_literal: true

require "etc"
require "support/command_line"
require "support/http_case"
require "support/servers"

module Bench
  # The command line of bench/http.
  class HTTPOptions
    include CommandLine

    SERVERS = %w[pando pando-direct iodine agoo itsi falcon puma pitchfork nginx nginx-deferred].freeze
    KINDS = %w[keep close].freeze
    HEADS = %w[hello headers].freeze
    POSITIVE = /\A[1-9]\d{0,4}\z/

    attr_reader :servers, :seconds, :rounds, :json

    def initialize(arguments)
      @servers = SERVERS
      @seconds = 3
      @rounds = 3
      @workers = [1, 2]
      @connections = [16, 64]
      @kinds = KINDS
      @heads = HEADS
      read(arguments)
    end

    # @return [Hash{Integer => Array<HTTPCase>}] cases by number of workers
    def cases
      @workers.to_h do |workers|
        all = @kinds.product(@heads, @connections).map do |kind, head, connections|
          HTTPCase.new(workers: workers, connections: connections, keep: kind == "keep", large: head == "headers")
        end
        [workers, all]
      end
    end

    # With two CPUs, the server has the first one for itself and the client the second.
    def cores = pinned? ? %w[0 1] : [nil, nil]

    private

    def program = "bench/http"

    def pinned? = @pinned != false && Etc.nprocessors > 1

    def parser
      @parser ||= OptionParser.new("Usage: #{program} [options]") do |options|
        options.on("--servers LIST", Array, "of #{SERVERS.join(",")} (default all)") do |names|
          @servers = known(names, SERVERS)
        end
        cases_options(options)
        options.on("--seconds N", POSITIVE, "each measurement (default 3)") { |count| @seconds = count.to_i }
        options.on("--rounds N", POSITIVE, "of all servers in turn (default 3)") { |count| @rounds = count.to_i }
        options.on("--no-pin", "let the kernel choose the CPUs") { @pinned = false }
        ending(options, "ratio")
      end
    end

    def cases_options(options)
      options.on("--workers LIST", Array, "numbers (default 1,2)") { |list| @workers = numbers(list) }
      options.on("--connections LIST", Array, "numbers (default 16,64)") { |list| @connections = numbers(list) }
      options.on("--kinds LIST", Array, "of #{KINDS.join(",")} (default both)") { |list| @kinds = known(list, KINDS) }
      options.on("--heads LIST", Array, "of #{HEADS.join(",")} (default both)") { |list| @heads = known(list, HEADS) }
    end

    def numbers(list)
      wrong = list.grep_v(POSITIVE).first
      wrong ? raise(OptionParser::InvalidArgument, wrong) : list.map(&:to_i)
    end
  end
end
