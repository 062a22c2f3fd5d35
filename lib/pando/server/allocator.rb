# frozen_string_literal: true

require "etc"
require "pando/errors"
require "pando/server/jemalloc"
require "pando/sys"

module Pando
  class Server
    # Which malloc the application gets, decided by the monitor before each cold boot: that is an exec, so it can have
    # jemalloc loaded before the C library. Forked processes keep more of what they share then (docs/sharing.md).
    #
    # @api private
    class Allocator
      PRELOAD = "LD_PRELOAD"
      CONF = "MALLOC_CONF"
      # No thread of its own, which would not live in a child, and no huge pages, of which more than one page may
      # become a child's own at once. Other options made no difference.
      DEFAULTS = "background_thread:false,thp:never"
      # Of pages larger than those that it was built for jemalloc can make nothing.
      PAGE = 4096
      PACKAGE = "Debian and Ubuntu have it as libjemalloc2, Fedora as jemalloc"

      # @param wanted [:auto, :jemalloc, :glibc]
      # @param environment [Hash{String => String}] of this process
      # @param library [Jemalloc, nil] the newest there is
      # @param loaded [String, nil] the version of the one that this process has itself
      # @param page [Integer] bytes
      def initialize(wanted, environment: ENV.to_h, library: Jemalloc.newest, loaded: Sys.jemalloc,
                     page: Etc.sysconf(Etc::SC_PAGESIZE))
        @wanted = wanted
        @environment = environment
        @library = library
        @loaded = loaded
        @page = page
      end

      # @return [Hash{String => String}] that a cold boot needs
      # @raise [BootError] jemalloc is wanted and cannot be had
      def variables
        raise BootError, "allocator :jemalloc, but #{obstacle}" if @wanted == :jemalloc && !@loaded && obstacle
        return {} if @wanted == :glibc || @loaded || obstacle

        { PRELOAD => [@library.path, *preloaded].join(":"), CONF => [DEFAULTS, *@environment[CONF]].join(",") }
      end

      # @return [String, nil] why it cannot be loaded
      def obstacle
        if !@library then "there is no libjemalloc.so.2 for this Ruby (#{PACKAGE})"
        elsif !@library.safe?
          "#{@library.path} is version #{@library.version || "unknown"}: before 5.3 a fork may hang"
        elsif @wanted == :auto then doubt
        end
      end

      private

      def doubt
        return "LD_PRELOAD has #{preloaded} already" if preloaded

        "this kernel's pages have #{@page} bytes: allocator :jemalloc, if it was built for that" if @page != PAGE
      end

      def preloaded
        text = @environment[PRELOAD].to_s.strip
        text unless text.empty?
      end
    end
  end
end
