# frozen_string_literal: true

require "open3"
require "rbconfig"
require "support/checkout"

module Support
  # A Ruby of its own for what a test does with GC.stress: each allocation collects the whole heap, and that of a test
  # run is large.
  module SmallProcess
    private

    # @param program [String] ends with an exception unless all is well
    def assert_in_small_process(program)
      folders = %w[lib test].flat_map { |name| ["-I", Checkout.path(name)] }
      output, status = Open3.capture2e({ "RUBYOPT" => nil }, RbConfig.ruby, "-W0", *folders, "-e", program)

      assert_predicate status, :success?, output
    end
  end
end
