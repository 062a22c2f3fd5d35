# frozen_string_literal: true

require "test_helper"
require "support/servers"

# Promise: what the kernel is told of pages holds in workers, of reforks too, and what it cannot do stops nobody.
class PageSettingsIntegrationTest < Minitest::Test
  include Support::Servers

  SETTINGS = "workers 1\nrefork :manual\ntransparent_huge_pages false\nsame_page_merging true\n"
  APP = <<~'RUBY'
    run ->(_env) { [200, {}, [File.read("/proc/self/status")[/^THP_enabled:\s*(\d)/, 1].to_s]] }
  RUBY

  def test_workers_have_no_huge_pages
    skip "this kernel does not tell" unless File.read("/proc/self/status").include?("THP_enabled")
    server = serve(app: APP, config: SETTINGS)

    assert_equal "0", server.get("/").body
    server.refork
    assert_equal "0", server.get("/").body
    assert_equal "same_page_merging", server.wait_past("pages.unavailable")["setting"] unless merging?
  end

  def merging?
    File.read("/sys/kernel/mm/ksm/run").to_i == 1
  rescue SystemCallError
    false # and this will be told
  end
end
