# frozen_string_literal: true

require "test_helper"
require "tempfile"
require "pando/server/page_settings"

# What the kernel is told of the application's pages, and what is said when it cannot.
class PageSettingsTest < Minitest::Test
  # A kernel that can do all, or refuses.
  class Kernel
    attr_reader :asked

    def initialize(error = nil)
      @error = error
      @asked = []
    end

    def disable_huge_pages! = answer(:huge)
    def merge_same_pages! = answer(:merge)

    def answer(what)
      raise @error if @error

      @asked << what
      true
    end
  end

  def setup
    @told = []
    @subscription = Pando::Events.subscribe("pages.unavailable") { |event| @told << event.payload.values }
  end

  def teardown
    Pando::Events.unsubscribe(@subscription)
  end

  def apply(kernel = Kernel.new, huge: false, merge: true, ksm: "1\n")
    Tempfile.create do |file|
      file.write(ksm)
      file.flush
      Pando::Server::PageSettings.apply(huge: huge, merge: merge, kernel: kernel, ksm: file.path)
    end
    kernel.asked
  end

  def test_left_alone_by_default
    assert_empty apply(huge: true, merge: false)
  end

  def test_what_the_settings_ask_for
    assert_equal %i[huge merge], apply
    assert_equal %i[huge], apply(merge: false)
    assert_equal %i[merge], apply(huge: true)
    assert_empty @told
  end

  def test_what_the_kernel_lacks_is_told
    apply(Kernel.new(Errno::EINVAL))

    assert_equal %i[transparent_huge_pages same_page_merging], @told.map(&:first)
    assert_match(/Linux 6.4 \(Invalid argument\)\z/, @told.last.last)
  end

  def test_ksm_that_does_not_run_is_told
    assert_equal [:merge], apply(huge: true, ksm: "0\n")
    assert_equal [[:same_page_merging, Pando::Server::PageSettings::KSM_OFF]], @told
  end
end
