# frozen_string_literal: true

# The suite reforks between its tests (docs/testing.md). To be required before the app is:
#
#   require "minitest/autorun"
#   require "pando/minitest"
# Off Linux the suite runs as it does without this line.
require "minitest"
require "pando/platform"
require "pando/testing"
if Pando::Platform.linux?
  require "pando/testing/minitest_plug"
  Pando::Testing::MinitestPlug.install
else
  warn "pando: the suite runs without reforks: they need Linux, and this is #{Pando::Platform.name}"
end
