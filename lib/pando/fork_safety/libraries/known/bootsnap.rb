# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "bootsnap" do
  fine note: "Once loaded it has no thread and no file open.",
       source: "https://github.com/Shopify/bootsnap/tree/v1.18.6/lib/bootsnap"
end
