# frozen_string_literal: true

require "pando/cluster/control/line"
require "pando/errors"

module Pando
  module Pages
    # What a worker has recorded about its own memory: a file that the worker writes and the command reads. Tables of
    # numbers have the layout of the C code (see ext/pando/sys/page_watch.h), because both ends run on one machine;
    # texts are records as on the control socket. The reader checks everything.
    class Recording
      # The file is incomplete, or is no recording.
      class Broken < Pando::Error; end

      Line = Cluster::Control::Line
      # A look at the pages: the number of the job before it, what made pages private, and figures of the look.
      Step = Struct.new(:job, :cause, :faults, :fresh, :gone, :microseconds)
      # A private page: its number, whether it belongs to a file, and the index of the step that found it.
      Page = Struct.new(:number, :of_file, :step)

      MAGIC = "pando pages 1\n"
      PARTS = %w[facts jobs maps heap steps pages].freeze
      LARGEST = 1 << 27 # bytes of a part
      CAUSES = %i[before job minor_gc major_gc mixed].freeze
      STEP_BITS = 18

      # @return [Hash{String => String}] by part
      attr_reader :parts

      # @param parts [Hash{String => String}]
      def initialize(parts)
        @parts = parts
      end

      # @param io [IO]
      def write(io)
        io.write(MAGIC, *PARTS.flat_map { |name| [[parts.fetch(name).bytesize].pack("Q<"), parts.fetch(name)] })
      end

      # @param io [IO] @return [Recording]
      # @raise [Broken]
      def self.read(io)
        raise Broken, "the worker has written nothing: it ended, or could not" unless io.read(MAGIC.bytesize) == MAGIC

        new(PARTS.to_h { |name| [name, part(io, name)] })
      end

      def self.part(io, name)
        size = io.read(8)&.then { |bytes| bytes.unpack1("Q<") if bytes.bytesize == 8 }
        raise Broken, "#{name} are missing" unless size&.<=(LARGEST)

        bytes = size.zero? ? "" : io.read(size)
        raise Broken, "#{name} are cut off" unless bytes&.bytesize == size

        bytes
      end
      private_class_method :part

      # @return [Hash{String => String}]
      def facts = @facts ||= Line.decode(parts["facts"])&.last || raise(Broken, "the facts are malformed")

      # @return [Array<Hash{String => String}>] of each job: "request", "compiled"
      def jobs
        @jobs ||= parts["jobs"].each_line.map do |line|
          Line.decode(line)&.last || raise(Broken, "a job is malformed")
        end
      end

      # @return [Array<Step>]
      def steps
        @steps ||= numbers("steps", "L*").each_slice(6).map do |job, cause, *rest|
          raise Broken, "a step has an unknown cause" unless CAUSES[cause] && rest.size == 4

          Step.new(job, CAUSES[cause], *rest)
        end
      end

      # @return [Array<Integer>] addresses of Ruby's heap pages
      def heap = numbers("heap", "Q*")

      # @yieldparam page [Page] the same object each time; in rising order
      def each_page
        page = Page.new
        numbers("pages", "Q*").each do |packed|
          page.number = packed >> (STEP_BITS + 1)
          page.of_file = packed[STEP_BITS] == 1
          page.step = packed & ((1 << STEP_BITS) - 1)
          raise Broken, "a page belongs to no step" unless page.step < steps.size

          yield page
        end
      end

      private

      def numbers(part, format) = parts.fetch(part).unpack(format)
    end
  end
end
